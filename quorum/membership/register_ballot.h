// SPDX-License-Identifier: Apache-2.0
// register_ballot: takes a ballot from a register that a service keeps for each
// log: a number with a version, and compare-and-set.
//
// Idea: this class makes no calls. It says what to ask the service next, and
// gets the outcome. The service's client, or the simulator, does the rest.
//
//   kRead    the register is read: the last ballot and its version, or none
//   kCreate  it is made with the new ballot, if there is none
//   kSet     the new ballot takes the place of that version
//   kDone    result()
//
//   in flight | took effect | did not: another was faster | unknown
//   ----------+-------------+-----------------------------+--------------
//   kRead     | continue    |                             | kRead
//   kCreate   | kDone       | kRead                       | consumed; kRead
//   kSet      | kDone       | kRead                       | consumed; kRead
//
// A ballot of a register is packed as one without (ballot.h), so that it still
// names its node and process; the register gives the counter. The counter is
// also raised above all promises of the replicas. A new register, or one that
// was restored from an old copy, is behind these promises. Its bare counter
// would give a ballot that replicas refuse, or an epoch that was promised
// before (P-A4.1, BA4 of ballot.h).
//
// Invariants:
//   RB1. It writes a ballot above what it read, above all promises of the
//        question, and above all that its sequence tried before: a consumed
//        number is never tried again.
//   RB2. The result is a ballot that this request has certainly written. So no
//        two ballots of one register have the same counter (P-H4, P-H5).
// Thread safety: one thread.
// References: protocol P-A4.1, P-H4, P-H5; membership.h.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_REGISTER_BALLOT_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_REGISTER_BALLOT_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"

namespace alpheus::quorum {

// A register that exists.
struct BallotRegister {
  Epoch last;
  int64_t version = 0;  // changes with each write

  bool operator==(const BallotRegister&) const = default;
};

class RegisterBallot {
 public:
  enum class Step { kRead, kCreate, kSet, kDone };

  // `sequence` is of the asking process, one for all its requests. It must
  // outlive the object.
  RegisterBallot(BallotSequence& sequence, BallotQuestion question);

  // Returns what to ask the service for.
  Step step() const { return step_; }
  // For kCreate and kSet: the value to write; for kSet: over which version.
  Epoch value() const { return value_; }
  int64_t version() const { return version_; }

  // Outcome of kRead: the register, or none. It may be an older one: then kSet
  // is refused.
  void OnRead(const std::optional<BallotRegister>& found);
  // Outcomes of kCreate and kSet.
  void OnWritten();
  void OnOvertaken();
  // Outcome of any step: unknown, as the connection was lost.
  void OnUnknown();

  // Requires: step() == kDone.
  const absl::StatusOr<Epoch>& result() const { return result_; }

 private:
  void Finish(absl::StatusOr<Epoch> result);

  BallotSequence& sequence_;
  const BallotQuestion question_;
  Step step_ = Step::kRead;
  Epoch value_;
  int64_t version_ = 0;
  absl::StatusOr<Epoch> result_;
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_REGISTER_BALLOT_H_
