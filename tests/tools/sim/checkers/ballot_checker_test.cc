// SPDX-License-Identifier: Apache-2.0
// Does the checker of ballots see each that must not be given?
#include "tools/sim/checkers/ballot_checker.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "tests/tools/sim/actors/membership_clients.h"

namespace alpheus::sim {
namespace {

class BallotCheckerTest : public CheckerTest {
 protected:
  void Write(Epoch before, Epoch ballot) {
    checker_.Written(before, ballot, Process(quorum::BallotNode(ballot).value));
  }
  // Gives a ballot of a register.
  void Give(Epoch ballot, uint64_t node) {
    checker_.Assigned({{Epoch(0), BallotOf(4, 1)}, kThree}, ballot,
                      Process(node),
                      /*is_of_register=*/true);
  }

  BallotChecker checker_{oracle_};
};

TEST_F(BallotCheckerTest, BallotsThatRiseAndAreOfTheirWritersViolateNothing) {
  Write(Epoch(0), BallotOf(5, 1));
  Give(BallotOf(5, 1), 1);
  Write(BallotOf(5, 1), BallotOf(6, 2));
  Write(BallotOf(6, 2), BallotOf(7, 3));  // consumed
  Write(BallotOf(7, 3), BallotOf(9, 1));
  Give(BallotOf(9, 1), 1);
  Give(BallotOf(6, 2), 2);  // it heard of it late
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(checker_.given(), 3u);
}

TEST_F(BallotCheckerTest, ARegisterThatGoesBackIsSeen) {
  Write(BallotOf(6, 1), BallotOf(5, 2));
  EXPECT_EQ(violated(), "P-A4.1");
}

TEST_F(BallotCheckerTest, TwoBallotsOfOneCounterAreSeen) {
  Write(BallotOf(6, 1), BallotOf(6, 2));
  EXPECT_EQ(violated(), "P-A4.1");
}

TEST_F(BallotCheckerTest, ABallotAtAPromiseIsSeen) {
  Write(Epoch(0), BallotOf(4, 1));
  Give(BallotOf(4, 1), 1);
  EXPECT_EQ(violated(), "P-A4.1");
}

TEST_F(BallotCheckerTest, ABallotThatNobodyWroteIsSeen) {
  Write(Epoch(0), BallotOf(6, 1));
  Give(BallotOf(5, 1), 1);
  EXPECT_EQ(violated(), "P-A4.1");
}

TEST_F(BallotCheckerTest, TheBallotOfAnotherProcessViolatesInv4) {
  Write(Epoch(0), BallotOf(5, 1));
  Give(BallotOf(5, 1), 2);
  EXPECT_EQ(violated(), "P-INV-4");
}

TEST_F(BallotCheckerTest, ABallotThatIsGivenTwiceViolatesInv4) {
  Write(Epoch(0), BallotOf(5, 1));
  Give(BallotOf(5, 1), 1);
  EXPECT_EQ(violated(), "");
  Give(BallotOf(5, 1), 1);
  EXPECT_EQ(violated(), "P-INV-4");
}

// Two processes of one node may (BA4), and nothing was written.
TEST_F(BallotCheckerTest, WithoutARegisterABallotMayBeGivenTwice) {
  for (int i = 0; i < 2; ++i) {
    checker_.Assigned({{BallotOf(4, 1)}, kThree}, BallotOf(5, 1), Process(1),
                      /*is_of_register=*/false);
  }
  EXPECT_EQ(violated(), "");
  checker_.Assigned({{BallotOf(5, 2)}, kThree}, BallotOf(5, 1), Process(1),
                    /*is_of_register=*/false);
  EXPECT_EQ(violated(), "P-A4.1");
}

// The source may be wrong about where a ballot is from.
TEST_F(BallotCheckerTest, TheBallotOfAnotherNodeViolatesInv4WithoutARegister) {
  Write(Epoch(0), BallotOf(5, 1));
  checker_.Assigned({{BallotOf(4, 1)}, kThree}, BallotOf(5, 1), Process(1),
                    /*is_of_register=*/false);
  EXPECT_EQ(violated(), "");
  checker_.Assigned({{BallotOf(4, 1)}, kThree}, BallotOf(5, 1), Process(2),
                    /*is_of_register=*/false);
  EXPECT_EQ(violated(), "P-INV-4");
}

// Answers what it was told to.
class ScriptedSource final : public quorum::BallotSource {
 public:
  std::unique_ptr<quorum::BallotRequest> Ask(
      const quorum::BallotQuestion&) override {
    return std::make_unique<Request>(answer);
  }

  std::optional<absl::StatusOr<Epoch>> answer;

 private:
  class Request final : public quorum::BallotRequest {
   public:
    explicit Request(std::optional<absl::StatusOr<Epoch>>& answer)
        : report_(answer) {}
    Polled Poll() override { return report_ ? Polled::kDone : Polled::kIdle; }
    Deadline NextPoll() const override { return Deadline::AtNanos(42); }
    absl::StatusOr<Epoch> ballot() const override { return *report_; }
    bool is_of_register() const override { return true; }

   private:
    std::optional<absl::StatusOr<Epoch>>& report_;
  };
};

TEST_F(BallotCheckerTest, WhatASourceGivesIsPassedOnAndJudged) {
  ScriptedSource source;
  CheckedBallots ballots(source, checker_, Process(1));
  const auto request = ballots.Ask({{BallotOf(4, 1)}, kThree});
  EXPECT_EQ(request->NextPoll().at_nanos(), 42);
  EXPECT_EQ(request->Poll(), Polled::kIdle);
  source.answer = absl::UnavailableError("");
  EXPECT_EQ(request->Poll(), Polled::kDone);
  EXPECT_TRUE(absl::IsUnavailable(request->ballot().status()));
  EXPECT_EQ(checker_.given(), 0u);
  source.answer = BallotOf(5, 1);
  EXPECT_EQ(request->Poll(), Polled::kDone);
  EXPECT_EQ(*request->ballot(), BallotOf(5, 1));
  EXPECT_EQ(checker_.given(), 1u);
  EXPECT_EQ(violated(), "P-A4.1");
}

}  // namespace
}  // namespace alpheus::sim
