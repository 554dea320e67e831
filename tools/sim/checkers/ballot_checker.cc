// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/ballot_checker.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

void BallotChecker::Written(Epoch before, Epoch ballot,
                            const quorum::PrimaryId& writer) {
  written_.emplace(ballot, writer);
  if (ballot > before &&
      quorum::BallotCounter(ballot) > quorum::BallotCounter(before))
    return;
  oracle_.Violate("P-A4.1",
                  absl::StrCat("node ", writer.node.value, " writes ballot ",
                               ballot.value, " over ballot ", before.value));
}

void BallotChecker::Assigned(const quorum::BallotQuestion& question,
                             Epoch ballot, const quorum::PrimaryId& process,
                             bool is_of_register) {
  ++assigned_;
  // Without a register two processes of a node may share one (BA4).
  const quorum::PrimaryId* const writer = OtherWriterOf(ballot, process);
  if (is_of_register) {
    JudgeOwner(ballot, process);
  } else if (writer != nullptr && writer->node != process.node) {
    ViolateByWriter(ballot, *writer, process);
  }
  for (const Epoch promised : question.promised) {
    if (ballot > promised) continue;
    oracle_.Violate(
        "P-A4.1", absl::StrCat("node ", process.node.value, " is given ballot ",
                               ballot.value, ", and was told that epoch ",
                               promised.value, " is promised"));
  }
}

const quorum::PrimaryId* BallotChecker::OtherWriterOf(
    Epoch ballot, const quorum::PrimaryId& process) const {
  for (auto written = written_.lower_bound({ballot, quorum::PrimaryId{}});
       written != written_.end() && written->first == ballot; ++written) {
    if (written->second != process) return &written->second;
  }
  return nullptr;
}

void BallotChecker::ViolateByWriter(Epoch ballot,
                                    const quorum::PrimaryId& writer,
                                    const quorum::PrimaryId& process) {
  oracle_.Violate(
      "P-INV-4",
      absl::StrCat("ballot ", ballot.value, " of node ", writer.node.value,
                   " is given to node ", process.node.value));
}

void BallotChecker::JudgeOwner(Epoch ballot, const quorum::PrimaryId& process) {
  const auto [owner, is_new] = owners_.emplace(ballot, process);
  if (!is_new) {
    oracle_.Violate("P-INV-4",
                    absl::StrCat("ballot ", ballot.value, " is given to node ",
                                 process.node.value, ", after node ",
                                 owner->second.node.value));
  }
  if (written_.contains({ballot, process})) return;
  const quorum::PrimaryId* const writer = OtherWriterOf(ballot, process);
  if (writer != nullptr) {
    ViolateByWriter(ballot, *writer, process);
  } else {
    oracle_.Violate(
        "P-A4.1", absl::StrCat("node ", process.node.value, " is given ballot ",
                               ballot.value, ", which it did not write"));
  }
}

class CheckedBallots::Request final : public quorum::BallotRequest {
 public:
  Request(CheckedBallots& ballots, const quorum::BallotQuestion& question)
      : ballots_(ballots),
        question_(question),
        request_(ballots.source_.Ask(question)) {}

  Polled Poll() override {
    const Polled polled = request_->Poll();
    if (polled != Polled::kDone) return polled;
    if (const absl::StatusOr<Epoch> ballot = request_->ballot(); ballot.ok()) {
      ballots_.checker_.Assigned(question_, *ballot, ballots_.process_,
                                 request_->is_of_register());
    }
    return polled;
  }
  Deadline NextPoll() const override { return request_->NextPoll(); }
  absl::StatusOr<Epoch> ballot() const override { return request_->ballot(); }
  bool is_of_register() const override { return request_->is_of_register(); }

 private:
  CheckedBallots& ballots_;
  const quorum::BallotQuestion question_;
  std::unique_ptr<quorum::BallotRequest> request_;
};

std::unique_ptr<quorum::BallotRequest> CheckedBallots::Ask(
    const quorum::BallotQuestion& question) {
  return std::make_unique<Request>(*this, question);
}

}  // namespace alpheus::sim
