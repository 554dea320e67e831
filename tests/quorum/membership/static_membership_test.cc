// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/static_membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/status/status.h"

namespace alpheus::quorum {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr QuorumSizes kTwoOfThree{3, 2, 2};
constexpr PrimaryId kSelf{NodeId(2), 9};

TEST(StaticMembershipTest, BallotsAreThoseOfASequenceAndComeAtOnce) {
  StaticMembership membership = *StaticMembership::Make(kSelf);
  BallotSequence sequence = *BallotSequence::Make(kSelf);
  const std::vector<Epoch> promised = {Epoch(uint64_t{5} << 32), Epoch(0)};
  for (int i = 0; i < 3; ++i) {
    const auto request = membership.Ask({promised, kTwoOfThree});
    ASSERT_EQ(request->Poll(), Polled::kDone);
    const Epoch ballot = *sequence.Next(promised, kTwoOfThree);
    EXPECT_EQ(*request->ballot(), ballot);
    // Another poll draws no other one.
    EXPECT_EQ(request->Poll(), Polled::kDone);
    EXPECT_EQ(*request->ballot(), ballot);
    EXPECT_FALSE(request->NextPoll().is_set());
  }
}

TEST(StaticMembershipTest, TooFewPromisesGiveNoBallot) {
  StaticMembership membership = *StaticMembership::Make(kSelf);
  const auto request = membership.Ask({{Epoch(0)}, kTwoOfThree});
  ASSERT_EQ(request->Poll(), Polled::kDone);
  EXPECT_TRUE(absl::IsUnavailable(request->ballot().status()));
}

TEST(StaticMembershipTest, ProcessesThatCannotHaveBallotsAreRefused) {
  EXPECT_TRUE(
      absl::IsInvalidArgument(StaticMembership::Make({NodeId(0), 1}).status()));
}

TEST(StaticMembershipTest, WhoStandsIsFirstAsFarAsItKnows) {
  StaticMembership membership = *StaticMembership::Make(kSelf);
  EXPECT_EQ(membership.session().state, SessionState::kConnected);
  EXPECT_FALSE(IsFirst(membership, kSelf));
  membership.Stand();
  membership.Register({NodeId(2), 7, "host:1", Epoch(3)});
  EXPECT_TRUE(IsFirst(membership, kSelf));
  EXPECT_FALSE(IsFirst(membership, {NodeId(2), 8}));
  EXPECT_EQ(membership.registrations().size(), 1u);
  EXPECT_THAT(membership.TakeEvents(),
              ElementsAre(MembershipEvent::kCandidatesChanged,
                          MembershipEvent::kRegistrationsChanged));
  EXPECT_TRUE(membership.problem().ok());
  membership.Withdraw();
  EXPECT_THAT(membership.candidates(), IsEmpty());
  membership.Unregister();
  EXPECT_THAT(membership.registrations(), IsEmpty());
  EXPECT_FALSE(IsFirst(membership, kSelf));
}

}  // namespace
}  // namespace alpheus::quorum
