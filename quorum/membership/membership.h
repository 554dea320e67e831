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
//   MB1. A ballot is given to one process, and once.
//   MB2. A ballot is above every promise that its question names. A register's
//        ballot is also above all that the register gave before.
//   MB3. An unknown outcome gives no ballot: its number is consumed.
// Recovery sees only this (BallotSource). Safety must not rest on a live
// session, on a registration, or on which process is first. Two processes may
// both believe to be first until one notices; both may open, and the promises
// of the replicas decide (promise.h). A primary that lost its session stops
// only to save its successor a wait.
//
// A client of ZooKeeper, or of another such service, derives from Membership
// and belongs into this folder. Only quorum/ may include its library (DOORS in
// .ci/lint.py); recovery sees BallotSource alone, in EpochOpening::Start. There
// is no such client yet: api/log/replicated_engine.cc opens logs with a
// StaticMembership. A model to copy is tools/sim/actors/sim_membership.h, a
// client of a simulated service. tools/sim/actors/candidate_agent.h shows how a
// process uses it: when it stands for primary, opens the log and withdraws.
//
// How a coordination service can implement it, call by call:
//   session       a session of the service. kSuspended is a lost connection: it
//                 is unknown whether registrations are still there. kExpired is
//                 final, and can be told only once the service is reached again
//   Register      an ephemeral node, named by node and incarnation: the one of
//                 an earlier process may still be there
//   Stand         an ephemeral sequential node that holds the PrimaryId. If the
//                 connection is lost while it is made, the list tells whether
//                 it was; if the list is old, a process may stand twice
//   the lists     a read with a one-shot watch, which the next read sets again.
//                 Changes are reported late and may be merged. The last one is
//                 always reported. After kSuspended they are read again
//   Ask           RegisterBallot (register_ballot.h) on a versioned node
// Thread safety: one thread.
// References: protocol P-A4.1, P-H4, P-H5, P-H16, P-H24.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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
  // Returns the ballot. Requires: Poll has returned kDone. Errors: Unavailable
  // (too few promises; the session expired); FailedPrecondition (no counter is
  // left).
  virtual absl::StatusOr<Epoch> ballot() const = 0;
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

// A process that wants to be primary, and the sequence number that it drew.
struct Candidate {
  uint64_t sequence = 0;
  PrimaryId primary;

  bool operator==(const Candidate&) const = default;
};

enum class MembershipEvent {
  kSessionChanged,
  kRegistrationsChanged,  // perhaps; several changes may be one event
  kCandidatesChanged,
};

// One process's view of one log.
class Membership : public BallotSource {
 public:
  // Takes what came from the service, and sends requests.
  virtual void Poll() = 0;
  // Returns when Poll has something to do although nothing came: to keep the
  // session.
  virtual Deadline NextPoll() const = 0;

  virtual Session session() const = 0;
  // Begins a new session and registers everything again. Requires: the session
  // has expired.
  virtual void Renew() = 0;

  // Wishes: they hold until they are changed, over lost connections and Renew.
  // The process is registered, and a candidate, some time later. Withdraw ends
  // the candidacy of Stand.
  virtual void Register(const Registration& registration) = 0;
  virtual void Stand() = 0;
  virtual void Withdraw() = 0;

  // Both return the last known list, with this process's own entries.
  virtual const std::vector<Registration>& registrations() const = 0;
  // The candidate that should be primary comes first.
  virtual const std::vector<Candidate>& candidates() const = 0;
  // Returns events since the last call, each kind once.
  virtual std::vector<MembershipEvent> TakeEvents() = 0;
};

// Returns true if the process is first, as far as known. Only a hint (see
// above).
bool IsFirst(const Membership& membership, const PrimaryId& process);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_
