// SPDX-License-Identifier: Apache-2.0
#include "quorum/arithmetic/ballot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace alpheus::quorum {
namespace {

using ::testing::HasSubstr;

constexpr QuorumSizes kThreeReplicas{3, 2, 2};

PrimaryId Process(uint64_t node, uint64_t incarnation) {
  return {NodeId(node), incarnation};
}

BallotSequence Sequence(uint64_t node, uint64_t incarnation) {
  return *BallotSequence::Make(Process(node, incarnation));
}

Epoch NextAbove(BallotSequence& ballots, std::vector<Epoch> promised) {
  return *ballots.Next(promised, kThreeReplicas);
}

// Corners of each part: both ends, and both sides of what packing cuts off.
std::vector<Ballot> CornerBallots() {
  std::vector<Ballot> all;
  for (const uint64_t counter : {uint64_t{1}, uint64_t{2}, kBallotCounterMax}) {
    for (const uint64_t node : {uint64_t{1}, uint64_t{2}, kBallotNodeMax}) {
      for (const uint64_t incarnation : {uint64_t{1}, (uint64_t{1} << 48) - 1,
                                         uint64_t{1} << 48, UINT64_MAX}) {
        all.push_back({counter, Process(node, incarnation)});
      }
    }
  }
  return all;
}

// BA4 (ballot.h): they differ only in the bits that packing cuts off.
bool SharesAnEpoch(const Ballot& a, const Ballot& b) {
  return a.counter == b.counter && a.primary.node == b.primary.node &&
         a.primary.incarnation / (uint64_t{1} << 48) ==
             b.primary.incarnation / (uint64_t{1} << 48);
}

// BA1 (ballot.h).
TEST(BallotTest, PackingKeepsTheOrder) {
  for (const Ballot& a : CornerBallots()) {
    for (const Ballot& b : CornerBallots()) {
      if (!(a < b)) continue;
      EXPECT_LE(PackBallot(a), PackBallot(b));
      EXPECT_EQ(PackBallot(a) == PackBallot(b), SharesAnEpoch(a, b));
    }
  }
}

// BA2 (ballot.h).
TEST(BallotTest, TwoNodesNeverShareAnEpoch) {
  for (const Ballot& a : CornerBallots()) {
    for (const Ballot& b : CornerBallots()) {
      if (a.primary.node == b.primary.node) continue;
      EXPECT_NE(PackBallot(a), PackBallot(b));
    }
  }
}

TEST(BallotTest, PartsComeBack) {
  for (const Ballot& ballot : CornerBallots()) {
    const Epoch epoch = PackBallot(ballot);
    EXPECT_EQ(BallotCounter(epoch), ballot.counter);
    EXPECT_EQ(BallotNode(epoch), ballot.primary.node);
  }
}

TEST(BallotTest, EpochHasTheFormThatIsDocumented) {
  EXPECT_EQ(PackBallot({0x01234567, Process(0x89ab, 0xcdef'0000'0000'0001)}),
            Epoch(0x0123'4567'89ab'cdef));
}

// P-H5: all see the same promises, and each takes another epoch above them.
TEST(BallotTest, NodesThatSeeTheSameTakeDifferentEpochs) {
  std::set<Epoch> taken;
  for (uint64_t node = 1; node <= 5; ++node) {
    BallotSequence ballots = Sequence(node, 7);
    taken.insert(NextAbove(ballots, {Epoch(0), Epoch(0)}));
  }
  EXPECT_EQ(taken.size(), 5u);
}

// BA4 (ballot.h): by the upper 16 bits of the incarnation, and only by them.
TEST(BallotTest, ProcessesOfOneNodeTakeDifferentEpochs) {
  BallotSequence first = Sequence(1, 0x1111'0000'0000'0000);
  BallotSequence second = Sequence(1, 0x2222'0000'0000'0000);
  BallotSequence like_second = Sequence(1, 0x2222'0000'0000'0001);
  const Epoch epoch = NextAbove(second, {Epoch(0), Epoch(0)});
  EXPECT_NE(NextAbove(first, {Epoch(0), Epoch(0)}), epoch);
  EXPECT_EQ(NextAbove(like_second, {Epoch(0), Epoch(0)}), epoch);
}

// P-A4.1: above each of them, whoever made it; also above epochs of local mode.
TEST(BallotTest, NextIsAboveAllThatWasPromised) {
  const Epoch high = PackBallot({41, Process(kBallotNodeMax, UINT64_MAX)});
  for (const auto& promised :
       std::vector<std::vector<Epoch>>{{Epoch(0), Epoch(0)},
                                       {Epoch(12345), Epoch(3)},
                                       {high, Epoch(1)},
                                       {Epoch(1), high},
                                       {Epoch(1), high, Epoch(5)}}) {
    BallotSequence ballots = Sequence(1, 1);
    const Epoch next = NextAbove(ballots, promised);
    for (const Epoch epoch : promised) EXPECT_GT(next, epoch);
    EXPECT_EQ(BallotNode(next), NodeId(1));
  }
}

// BA3 (ballot.h), P-H4: the replicas know nothing of the first one any more.
TEST(BallotTest, NoEpochIsTakenTwice) {
  BallotSequence ballots = Sequence(1, 1);
  const Epoch first = NextAbove(ballots, {Epoch(0), Epoch(0)});
  const Epoch second = NextAbove(ballots, {Epoch(0), Epoch(0)});
  EXPECT_GT(second, first);
  EXPECT_GT(NextAbove(ballots, {Epoch(0), Epoch(0)}), second);
}

TEST(BallotTest, FewerThanRPromisesGiveNoBallot) {
  BallotSequence ballots = Sequence(1, 1);
  const std::vector<Epoch> one{Epoch(0)};
  const auto next = ballots.Next(one, kThreeReplicas);
  EXPECT_EQ(next.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(next.status().message()),
              HasSubstr("1 replicas reported their promise, R = 2 of N = 3"));
}

TEST(BallotTest, CounterThatIsUsedUpIsAnError) {
  BallotSequence ballots = Sequence(1, 1);
  const std::vector<Epoch> last{
      PackBallot({kBallotCounterMax - 1, Process(2, 1)}), Epoch(0)};
  EXPECT_EQ(BallotCounter(*ballots.Next(last, kThreeReplicas)),
            kBallotCounterMax);
  const auto none = ballots.Next(last, kThreeReplicas);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("counter 536870911"));
}

TEST(BallotTest, ProcessesThatCannotBallotAreRefused) {
  EXPECT_TRUE(BallotSequence::Make(Process(kBallotNodeMax, 1)).ok());
  for (const PrimaryId& self :
       {Process(0, 1), Process(kBallotNodeMax + 1, 1), Process(1, 0)}) {
    const auto ballots = BallotSequence::Make(self);
    EXPECT_EQ(ballots.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(ballots.status().message()),
                HasSubstr("ballots of node " + std::to_string(self.node.value)))
        << ballots.status();
  }
}

TEST(BallotDeathTest, BallotsThatDoNotFitAbort) {
  EXPECT_DEATH(PackBallot({0, Process(1, 1)}), "ballot.h");
  EXPECT_DEATH(PackBallot({kBallotCounterMax + 1, Process(1, 1)}), "BA1");
  EXPECT_DEATH(PackBallot({1, Process(0, 1)}), "local mode");
  EXPECT_DEATH(PackBallot({1, Process(kBallotNodeMax + 1, 1)}), "BA2");
}

}  // namespace
}  // namespace alpheus::quorum
