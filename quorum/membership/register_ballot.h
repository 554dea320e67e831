// SPDX-License-Identifier: Apache-2.0
// register_ballot: how a ballot is taken from a register that a service keeps
// for each log: a number with a version, and compare-and-set.
//
// Idea: pure; it says what to ask the service for next, and is told what came
// of it. Whoever talks to the service (its client, or the simulator) does the
// rest.
//
//   kRead    the register is read: the last ballot and its version, or none
//   kCreate  it is made with the new ballot, if there is none
//   kSet     the new ballot takes the place of that version
//   kDone    result()
//
//   under way | took effect | did not: another was faster | nobody knows
//   ----------+-------------+-----------------------------+--------------
//   kRead     | go on       |                             | kRead
//   kCreate   | kDone       | kRead                       | burnt; kRead
//   kSet      | kDone       | kRead                       | burnt; kRead
//
// A ballot of a register is packed as one without (ballot.h), so that it still
// names its node and process; the register gives the counter. It is raised to
// whatever replicas have promised: a register that is new, or was restored from
// an old copy, is behind them, and what it gave then would be refused, or, on
// replicas that did not promise it, be an epoch that was promised before
// (P-A4.1, BA4 of ballot.h).
//
// Invariants:
//   RB1. What it writes is above what it read, above all promises of the
//        question, and above all that its sequence tried before: a burnt number
//        is never tried again.
//   RB2. The result is a ballot that was written by this request, for certain.
//        So of one register no two have the same counter (P-H4, P-H5).
// Thread safety: one thread.
// References: protocol P-A4.1, P-H4, P-H5; membership.h.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_REGISTER_BALLOT_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_REGISTER_BALLOT_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/membership.h"

namespace alpheus {

// A register that exists.
struct BallotRegister {
  Epoch last;
  int64_t version = 0;  // another one after each change

  bool operator==(const BallotRegister&) const = default;
};

class RegisterBallot {
 public:
  enum class Step { kRead, kCreate, kSet, kDone };

  // `sequence`, of the process that asks, the same one for all its requests,
  // must outlive it.
  RegisterBallot(BallotSequence& sequence, BallotQuestion question);

  // What to ask the service for.
  Step step() const { return step_; }
  // Of kCreate and kSet: what to write; of kSet: over which version.
  Epoch value() const { return value_; }
  int64_t version() const { return version_; }

  // Of kRead: what is there. It may be an older one: then kSet is refused.
  void OnRead(const std::optional<BallotRegister>& found);
  // Of kCreate and kSet.
  void OnWritten();
  void OnOvertaken();
  // Of all: the connection was lost meanwhile.
  void OnUnknown();
  // It can't go on: the session is gone, or the register can't be read.
  // Requires: !status.ok().
  void Fail(const absl::Status& status);

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

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_REGISTER_BALLOT_H_
