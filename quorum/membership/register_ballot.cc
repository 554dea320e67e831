// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/register_ballot.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "log/base/check.h"

namespace alpheus::quorum {

RegisterBallot::RegisterBallot(BallotSequence& sequence,
                               BallotQuestion question)
    : sequence_(sequence), question_(std::move(question)) {}

// RB1: the sequence remembers all numbers that it tried.
void RegisterBallot::OnRead(const std::optional<BallotRegister>& found) {
  ALPHEUS_CHECK(step_ == Step::kRead, "nothing else was asked for");
  std::vector<Epoch> below = question_.promised;
  // Raises one of the promises: the register is no replica, and must not count
  // as one of the R promises.
  if (found && !below.empty()) {
    below.front() = std::max(below.front(), found->last);
  }
  const absl::StatusOr<Epoch> next = sequence_.Next(below, question_.sizes);
  if (!next.ok()) return Finish(next);
  value_ = *next;
  version_ = found ? found->version : 0;
  step_ = found ? Step::kSet : Step::kCreate;
}

void RegisterBallot::OnWritten() {
  ALPHEUS_CHECK(step_ == Step::kCreate || step_ == Step::kSet,
                "nothing was to be written");
  Finish(value_);
}

void RegisterBallot::OnOvertaken() {
  ALPHEUS_CHECK(step_ == Step::kCreate || step_ == Step::kSet,
                "nothing was to be written");
  step_ = Step::kRead;
}

// The number may be in the register, or get there later: it is consumed. A read
// would not settle that. The number may not be there yet, another process reads
// the same old one, and both get one counter.
void RegisterBallot::OnUnknown() {
  ALPHEUS_CHECK(step_ != Step::kDone, "nothing was in flight");
  step_ = Step::kRead;
}

void RegisterBallot::Finish(absl::StatusOr<Epoch> result) {
  result_ = std::move(result);
  step_ = Step::kDone;
}

}  // namespace alpheus::quorum
