// SPDX-License-Identifier: Apache-2.0
// Ballots of a register whose answers are late, lost, or of an older state.
#include "quorum/membership/register_ballot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"

namespace alpheus::quorum {
namespace {

using Step = RegisterBallot::Step;

constexpr QuorumSizes kSizes{3, 2, 2};

BallotSequence Sequence(uint64_t node) {
  return *BallotSequence::Make({NodeId(node), node << 48 | 1});
}

Epoch BallotOf(uint64_t counter, uint64_t node) {
  return PackBallot({counter, {NodeId(node), node << 48 | 1}});
}

BallotQuestion Above(std::vector<Epoch> promised) {
  return {std::move(promised), kSizes};
}

TEST(RegisterBallotTest, ARegisterThatIsNotThereIsMade) {
  BallotSequence sequence = Sequence(1);
  RegisterBallot ballot(sequence, Above({Epoch(0), Epoch(0)}));
  ASSERT_EQ(ballot.step(), Step::kRead);
  ballot.OnRead(std::nullopt);
  ASSERT_EQ(ballot.step(), Step::kCreate);
  EXPECT_EQ(ballot.value(), BallotOf(1, 1));
  ballot.OnWritten();
  ASSERT_EQ(ballot.step(), Step::kDone);
  EXPECT_EQ(*ballot.result(), BallotOf(1, 1));
}

TEST(RegisterBallotTest, ABallotIsAboveTheLastAndNamesItsVersion) {
  BallotSequence sequence = Sequence(1);
  RegisterBallot ballot(sequence, Above({Epoch(0), Epoch(0)}));
  ballot.OnRead(BallotRegister{BallotOf(7, 3), 42});
  ASSERT_EQ(ballot.step(), Step::kSet);
  EXPECT_EQ(ballot.value(), BallotOf(8, 1));
  EXPECT_EQ(ballot.version(), 42);
}

// P-A4.1: a register that is new, or was restored from an old copy.
TEST(RegisterBallotTest, ARegisterIsRaisedAboveWhatIsPromised) {
  for (const bool is_new : {false, true}) {
    BallotSequence sequence = Sequence(1);
    RegisterBallot ballot(sequence, Above({BallotOf(20, 2), BallotOf(4, 3)}));
    ballot.OnRead(is_new ? std::nullopt
                         : std::optional(BallotRegister{BallotOf(7, 3), 1}));
    EXPECT_EQ(ballot.value(), BallotOf(21, 1));
  }
}

TEST(RegisterBallotTest, WhoIsOvertakenReadsAgain) {
  BallotSequence sequence = Sequence(1);
  RegisterBallot ballot(sequence, Above({Epoch(0), Epoch(0)}));
  ballot.OnRead(BallotRegister{BallotOf(7, 3), 1});
  ballot.OnOvertaken();
  ASSERT_EQ(ballot.step(), Step::kRead);
  ballot.OnRead(BallotRegister{BallotOf(12, 2), 2});
  EXPECT_EQ(ballot.value(), BallotOf(13, 1));
}

// MB3 (membership.h). Whether it took effect or not.
TEST(RegisterBallotTest, ABallotOfUnknownOutcomeIsConsumed) {
  for (const bool took_effect : {false, true}) {
    for (const bool is_new : {false, true}) {
      BallotSequence sequence = Sequence(1);
      RegisterBallot ballot(sequence, Above({Epoch(0), Epoch(0)}));
      const auto before =
          is_new ? std::nullopt
                 : std::optional(BallotRegister{BallotOf(7, 3), 1});
      ballot.OnRead(before);
      const Epoch consumed = ballot.value();
      ballot.OnUnknown();
      ASSERT_EQ(ballot.step(), Step::kRead);
      ballot.OnRead(took_effect ? std::optional(BallotRegister{consumed, 2})
                                : before);
      EXPECT_GT(BallotCounter(ballot.value()), BallotCounter(consumed));
      ballot.OnWritten();
      EXPECT_GT(*ballot.result(), consumed);
    }
  }
}

TEST(RegisterBallotTest, AReadThatIsLostIsAskedForAgain) {
  BallotSequence sequence = Sequence(1);
  RegisterBallot ballot(sequence, Above({Epoch(0), Epoch(0)}));
  ballot.OnUnknown();
  EXPECT_EQ(ballot.step(), Step::kRead);
}

TEST(RegisterBallotTest, NoRegisterStandsForAReplicaThatIsMissing) {
  BallotSequence sequence = Sequence(1);
  RegisterBallot ballot(sequence, Above({Epoch(0)}));
  ballot.OnRead(BallotRegister{BallotOf(7, 3), 1});
  ASSERT_EQ(ballot.step(), Step::kDone);
  EXPECT_TRUE(absl::IsUnavailable(ballot.result().status()));
}

TEST(RegisterBallotTest, WithoutACounterLeftThereIsNoBallot) {
  BallotSequence sequence = Sequence(1);
  RegisterBallot ballot(sequence, Above({Epoch(0), Epoch(0)}));
  ballot.OnRead(BallotRegister{BallotOf(kBallotCounterMax, 3), 1});
  ASSERT_EQ(ballot.step(), Step::kDone);
  EXPECT_TRUE(absl::IsFailedPrecondition(ballot.result().status()));
}

// RB1, RB2: three processes, a register whose reads may be behind, and writes
// whose outcome is lost, before or after they took effect.
TEST(RegisterBallotTest, BallotsOfARegisterAreUniqueAndRise) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<BallotSequence> sequences;
    std::vector<std::optional<RegisterBallot>> ballots(3);
    for (uint64_t node = 1; node <= 3; ++node) {
      sequences.push_back(Sequence(node));
    }
    std::optional<BallotRegister> now;
    std::optional<BallotRegister> before;
    std::vector<Epoch> written;
    std::vector<Epoch> given;
    for (int i = 0; i < 300; ++i) {
      const uint64_t who = random.Below(3);
      if (!ballots[who]) {
        ballots[who].emplace(sequences[who], Above({Epoch(0), Epoch(0)}));
      }
      RegisterBallot& ballot = *ballots[who];
      if (ballot.step() == Step::kRead) {
        ballot.OnRead(random.Below(4) == 0 ? before : now);
        continue;
      }
      const bool is_lost = random.Below(4) == 0;
      if (is_lost && random.Below(2) == 0) {
        ballot.OnUnknown();
      } else {
        const bool is_right = ballot.step() == Step::kCreate
                                  ? !now
                                  : now && now->version == ballot.version();
        if (is_right) {
          before = now;
          now = {ballot.value(), now ? now->version + 1 : 0};
          written.push_back(ballot.value());
        }
        if (is_lost) {
          ballot.OnUnknown();
        } else if (is_right) {
          ballot.OnWritten();
        } else {
          ballot.OnOvertaken();
        }
      }
      if (ballot.step() != Step::kDone) continue;
      EXPECT_TRUE(std::ranges::count(written, *ballot.result()) == 1);
      EXPECT_TRUE(std::ranges::count(given, *ballot.result()) == 0);
      if (!given.empty()) {
        EXPECT_GT(*ballot.result(), given.back());
      }
      given.push_back(*ballot.result());
      ballots[who].reset();
    }
    EXPECT_GT(given.size(), 10u);
    for (size_t i = 1; i < written.size(); ++i) {
      EXPECT_GT(BallotCounter(written[i]), BallotCounter(written[i - 1]));
    }
  }
}

}  // namespace
}  // namespace alpheus::quorum
