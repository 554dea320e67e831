// SPDX-License-Identifier: Apache-2.0
// membership: what a process is told about the others of one log, and where its
// ballots come from.
//
// Idea: a control plane beside the data plane. It says who is there, in which
// order they want to be primary, and gives ballots. It is a state machine that
// its owner polls; it starts no thread and waits for nothing. What it tells is
// a picture of the past: the service may be unreachable while all replicas are
// there, or the reverse, and both pictures may be wrong for as long (P-H24).
//
// What safety may rest on, which is ballots alone:
//   MB1. A ballot is given to one process, and once.
//   MB2. A ballot is above every promise that its question names. One of a
//        register is above all that the register gave before.
//   MB3. An outcome that nobody knows gives no ballot: its number is burnt.
// That is what recovery sees of all this (BallotSource). What it may not rest
// on: that a session lives, that a process is registered, and least of all who
// is first. Two processes may both be first for as long as one of them does not
// notice; both may open, and the promises of the replicas decide (promise.h).
// A primary whose session is gone stops for the sake of the next one's
// patience, never because it must.
//
// How a coordination service can be behind it, call by call:
//   session       a session of the service. kSuspended is a lost connection:
//                 what was registered is still there or not, nobody knows.
//                 kExpired is final, and can be told only once the service is
//                 reached again
//   Register      an ephemeral node, named by node and incarnation: the one of
//                 an earlier process may still be there
//   Stand         an ephemeral sequential node that holds the PrimaryId. If the
//                 connection is lost while it is made, the list tells whether
//                 it was; where that is behind, a process may stand twice
//   the lists     a read with a one-shot watch, which is set again by the next
//                 read; so changes are told late and several as one, but the
//                 last one is told. After kSuspended they are read again
//   Ask           RegisterBallot (register_ballot.h) on a versioned node
// Thread safety: one thread.
// References: protocol P-A4.1, P-H4, P-H5, P-H16, P-H24.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus {

// What a ballot must be above, and whose it is to be.
struct BallotQuestion {
  // The epochs that replicas told that they promised, one of each, and those
  // by which openings before were refused.
  std::vector<Epoch> promised;
  QuorumSizes sizes;
};

// A ballot that is asked for. Its end gives it up; its number may be burnt.
class BallotRequest {
 public:
  virtual ~BallotRequest() = default;

  // Goes on. The ballot, once; nothing while it is on its way.
  // Errors: Unavailable (too few promises were told; the session expired);
  // FailedPrecondition (no counter is left).
  virtual std::optional<absl::StatusOr<Epoch>> Poll() = 0;
  // When Poll has something to do, though nothing came from the service.
  virtual Deadline NextPoll() const = 0;
};

// Where the ballots of one process come from, for one log.
class BallotSource {
 public:
  virtual ~BallotSource() = default;

  // The source must outlive the request.
  virtual std::unique_ptr<BallotRequest> Ask(
      const BallotQuestion& question) = 0;
};

enum class SessionState {
  kConnecting,  // there is none yet
  kConnected,
  kSuspended,  // the connection is lost; whether the session is, is unknown
  kExpired,    // gone, with all that was registered in it
};

std::string_view NameOf(SessionState state);

struct Session {
  uint64_t id = 0;  // 0: there was none yet
  SessionState state = SessionState::kConnecting;

  bool operator==(const Session&) const = default;
};

// A process that serves a replica. `log_epoch` and `incarnation` are what its
// superline says: a replica that was rolled back or formatted anew shows
// (P-A8).
struct Registration {
  NodeId node;
  uint64_t incarnation = 0;
  std::string address;
  Epoch log_epoch;

  bool operator==(const Registration&) const = default;
};

// A process that wants to be primary, and the number that it drew for it.
struct Candidate {
  uint64_t sequence = 0;
  PrimaryId primary;

  bool operator==(const Candidate&) const = default;
};

enum class MembershipEvent {
  kSessionChanged,
  kMembersChanged,  // perhaps; several changes may be one event
  kCandidatesChanged,
};

// One process's view of one log.
class Membership : public BallotSource {
 public:
  // Takes what came from the service, and sends what is to be sent.
  virtual void Poll() = 0;
  // When Poll has something to do, though nothing came: to keep the session.
  virtual Deadline NextPoll() const = 0;

  virtual Session session() const = 0;
  // A session anew, in which all is registered as it was asked for.
  // Requires: the session has expired.
  virtual void Renew() = 0;

  // Wishes, which are kept up until they are changed: over lost connections,
  // and by Renew. The process is registered, and stands, some time later.
  virtual void Register(const Registration& registration) = 0;
  virtual void Stand() = 0;
  virtual void StepDown() = 0;

  // What was last heard of, with what is registered by itself.
  virtual const std::vector<Registration>& members() const = 0;
  // The one that is to be primary comes first.
  virtual const std::vector<Candidate>& candidates() const = 0;
  // Since the last time, each kind once.
  virtual std::vector<MembershipEvent> TakeEvents() = 0;
};

// Whether that process is to be primary, as far as is known. A hint (above).
bool IsFirst(const Membership& membership, const PrimaryId& process);

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_MEMBERSHIP_H_
