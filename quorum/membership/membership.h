// SPDX-License-Identifier: Apache-2.0
// membership: one process's view of the other processes of a log, and the
// source of its ballots.
//
// Idea: a control plane beside the data plane. It says which processes are
// there and in which order they want to be primary, and it gives ballots. It is
// a state machine that its owner polls; it starts no thread and never waits.
// Its view is of the past: the service may be unreachable while all replicas
// are there, or the reverse, and both views may be wrong meanwhile (P-H24).
//
// Safety rests on ballots alone:
//   MB1. A ballot of a register is given to one process, and once. Without a
//        register no process gives a ballot twice (BA3, BA4 of ballot.h).
//   MB2. A ballot is above every promise that its question names. A register's
//        ballot is also above all that the register gave before.
//   MB3. An unknown outcome gives no ballot: its number is consumed.
// Recovery sees only this (BallotSource). Safety must not rest on a live
// session, on a registration, or on which process is first. Two processes may
// both believe to be first until one notices; both may open, and the promises
// of the replicas decide (promise.h). A primary that lost its session goes on.
//
// StaticMembership needs no service; ZnodeMembership (zookeeper/) is a client
// of ZooKeeper. Openings take ballots, recovery/election/membership_entries.h
// has the entries of candidates and primaries, api/node/node_registrations.h
// those of nodes. tools/sim/actors/candidate_agent.h shows another use: the
// process that the service names first opens the log.
// Thread safety: one thread.
// References: protocol P-A4.1, P-H4, P-H5, P-H16, P-H24.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus::quorum {

// The bounds of a ballot.
struct BallotQuestion {
  // Epochs that replicas said they promised, one for each, and those that
  // refused earlier openings.
  std::vector<Epoch> promised;
  QuorumSizes sizes;
};

// A request for a ballot. Its destruction gives it up; the number may be
// consumed.
class BallotRequest {
 public:
  virtual ~BallotRequest() = default;

  // Advances. Returns kIdle while the ballot is on its way, then kDone.
  virtual Polled Poll() = 0;
  // Returns when Poll has something to do although nothing came from the
  // service.
  virtual Deadline NextPoll() const = 0;
  // Returns the ballot. If the service is away, the ballot is counted up from
  // the promises, without an error. Requires: Poll has returned kDone. Errors:
  // Unavailable (too few promises); FailedPrecondition (no counter is left).
  virtual absl::StatusOr<Epoch> ballot() const = 0;
  // Returns true if a register gave the ballot. Else it was counted up from the
  // promises alone. Requires: as ballot().
  virtual bool is_of_register() const { return false; }
};

// The source of one process's ballots, for one log.
class BallotSource {
 public:
  virtual ~BallotSource() = default;

  // Asks for a ballot. The source must outlive the request.
  virtual std::unique_ptr<BallotRequest> Ask(
      const BallotQuestion& question) = 0;
};

enum class SessionState {
  kConnecting,  // no session yet
  kConnected,
  kSuspended,  // connection lost; the session perhaps not
  kExpired,    // gone, with all that was registered in it
};

std::string_view NameOf(SessionState state);

struct Session {
  uint64_t id = 0;  // 0: there was none yet
  SessionState state = SessionState::kConnecting;

  bool operator==(const Session&) const = default;
};

// A process that serves a replica. `log_epoch` and `incarnation` are those of
// its superline: they show a replica that was rolled back or formatted again
// (P-A8).
struct Registration {
  NodeId node;
  uint64_t incarnation = 0;
  std::string address;
  Epoch log_epoch;

  bool operator==(const Registration&) const = default;
};

// A candidate's word for itself: how fresh its replica is, with an LSN that it
// may round, and the operator's preference. Candidates are ordered by log
// epoch, then LSN, then priority: records of an earlier epoch may be dropped.
struct Merits {
  Lsn persisted;
  uint32_t priority = 0;  // higher goes first
  Epoch log_epoch = {};   // of its replica; 0: it has none

  bool operator==(const Merits&) const = default;
};

// A process that wants to be primary, and the sequence number that it drew.
struct Candidate {
  uint64_t sequence = 0;
  PrimaryId primary;
  Merits merits = {};

  bool operator==(const Candidate&) const = default;
};

// A primary that has opened its epoch: a hint for clients.
struct LivePrimary {
  Epoch epoch;
  PrimaryId primary;
  std::string address;

  bool operator==(const LivePrimary&) const = default;
};

// A copy of the list of members, for clients. Replicas go by their superlines.
struct MembersCopy {
  uint64_t configuration_id = 0;
  uint32_t write_quorum = 0;
  uint32_t read_quorum = 0;
  std::vector<std::pair<NodeId, std::string>> members = {};  // with addresses

  bool operator==(const MembersCopy&) const = default;
};

enum class MembershipEvent {
  kSessionChanged,
  kRegistrationsChanged,  // perhaps; several changes may be one event
  kCandidatesChanged,
  kPrimaryChanged,
};

// One process's view of one log.
class Membership : public BallotSource {
 public:
  // Takes what came from the service, and sends requests.
  virtual void Poll() = 0;
  // Returns when Poll has something to do although nothing came: to keep the
  // session.
  virtual Deadline NextPoll() const = 0;
  // Returns a descriptor that can be read from when something came; -1: none.
  // Each Poll may change it.
  virtual int descriptor() const { return -1; }

  virtual Session session() const = 0;
  // Returns why the service is of no use, for an operator; OK: no reason is
  // known.
  virtual absl::Status problem() const { return absl::OkStatus(); }
  // Returns a warning for an operator about a service that is of use; empty:
  // none.
  virtual std::string warning() const { return ""; }
  // Returns true if the lists were read since the service was reached, and have
  // every entry that this process wishes, and no other one of it. An owner that
  // ends its wishes may wait for this before it ends.
  virtual bool is_settled() const { return true; }
  // Begins a new session and registers everything again. Requires: the session
  // has expired.
  virtual void Renew() = 0;

  // Wishes: they hold until they are changed, over lost connections and Renew.
  // The process is registered, and a candidate, some time later. Unregister
  // ends the wish of Register, and Withdraw that of Stand. A replica is
  // registered by the process that serves it, and by no other.
  virtual void Register(const Registration& registration) = 0;
  virtual void Unregister() = 0;
  virtual void Stand() = 0;
  virtual void Withdraw() = 0;
  // Changes this candidate's entry in the list of candidates.
  virtual void Describe(const Merits& /*merits*/) {}
  // Tells clients of this primary, unless they were told of a later epoch;
  // Retract takes it back. Requires: its epoch is open.
  virtual void Announce(const LivePrimary& /*primary*/) {}
  virtual void Retract() {}
  // Tells clients of the members, unless they were told of a later list.
  virtual void Publish(const MembersCopy& /*members*/) {}

  // Both return the last known list, with this process's own entries.
  virtual const std::vector<Registration>& registrations() const = 0;
  // The candidate that should be primary comes first.
  virtual const std::vector<Candidate>& candidates() const = 0;
  // Returns the primary that clients are told of, if any.
  virtual std::optional<LivePrimary> live_primary() const {
    return std::nullopt;
  }
  // Returns events since the last call, each kind once.
  virtual std::vector<MembershipEvent> TakeEvents() = 0;
};

// Above this value half of the counters are used up. No number of openings gets
// there.
inline constexpr uint64_t kBallotCounterAlarm = kBallotCounterMax / 2;

// Returns a warning for an operator if more than half of the counters are used
// up; else an empty text. `ballot` is the log's last one.
std::string CounterWarning(Epoch ballot);

// Returns true if the process is first, as far as known. Only a hint (see
// above).
bool IsFirst(const Membership& membership, const PrimaryId& process);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_
