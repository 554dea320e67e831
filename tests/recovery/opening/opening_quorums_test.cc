// SPDX-License-Identifier: Apache-2.0
// The replicas that count where an opening finds several configurations.
#include "recovery/opening/opening_quorums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/recovery/opening/opening_quorums_fixture.h"

namespace alpheus::testing {

using recovery::InstallQuorum;
using recovery::MembersChange;
using recovery::TargetOf;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using OpeningQuorumsTest = OpeningQuorumsFixture;

TEST_F(OpeningQuorumsTest, OneConfigurationTakesItsOwnQuorums) {
  const Configuration c = Of(1, {1, 2, 3}, 2);
  Add(1, c, 5);
  EXPECT_TRUE(absl::IsUnavailable(Judge(c)));
  Add(2, c, 5);
  ASSERT_TRUE(Judge(c).ok());
  EXPECT_THAT(promises_.unretired, IsEmpty());
  EXPECT_EQ(ToInstall(c, false).to_show.back(), (InstallQuorum{c.members, 2}));
}

// Node 1 has the new list, and nobody else; four may still open by the old one.
TEST_F(OpeningQuorumsTest, WhoHasAnUnretiredListDoesNotCount) {
  const Configuration before = Of(1, {1, 2, 3, 4}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 2);
  Add(1, after, 6);
  Add(2, before, 5);
  const absl::Status status = Judge(after);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(promises_.counts, 1u);
  // With an opening quorum of the old list, it is taken care of.
  Add(3, before, 5);
  ASSERT_TRUE(Judge(after).ok());
  EXPECT_EQ(promises_.counts, 7u);
  EXPECT_THAT(promises_.unretired, ElementsAre(before));
}

// Two changes from one list, each on one replica.
TEST_F(OpeningQuorumsTest, CompetingListsDoNotBothOpen) {
  const Configuration before = Of(1, {1, 2, 3, 4}, 3);
  const Configuration one = Of(2, {1, 2, 3}, 2);
  const Configuration other = Of(2, {2, 3, 4}, 2);
  Add(1, one, 6);
  Add(2, before, 5);
  EXPECT_FALSE(Judge(one).ok());
  reports_.clear();
  Add(3, before, 5);
  Add(4, other, 7);
  EXPECT_FALSE(Judge(other).ok());
}

// Two of five leave, and W = 2: members that leave promise, too (OPQ4).
TEST_F(OpeningQuorumsTest, LeaversPromiseForTheListThatTheyHave) {
  const Configuration before = Of(1, {1, 2, 3, 4, 5}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 2);
  Add(3, after, 6);
  for (const int node : {1, 2}) Add(node, before, 5);
  EXPECT_TRUE(absl::IsUnavailable(Judge(after)));
  for (const int node : {4, 5}) Add(node, before, 5);
  ASSERT_TRUE(Judge(after).ok());
  EXPECT_EQ(promises_.counts, 7u);
  EXPECT_THAT(promises_.unretired, ElementsAre(before));
}

// A newcomer of the new list is needed, and one that leaves of the old one.
TEST_F(OpeningQuorumsTest, ChangeGoesOnByThePromiseOfOneThatLeaves) {
  const Configuration before = Of(1, {1, 2, 3, 4, 5}, 2);
  const Configuration after = MadeFrom(before, Of(2, {1, 3, 4, 6}, 4));
  const MembersChange change = ChangeOf(before, after);
  Add(3, after, 6);
  for (const int node : {1, 4, 5}) Add(node, before, 5);
  AddBlank(6, before);
  EXPECT_TRUE(absl::IsUnavailable(Judge(after, &change)));
  Add(2, before, 5);
  ASSERT_TRUE(Judge(after, &change).ok());
  EXPECT_TRUE(promises_.is_half_done);
}

// Node 4 may have been replaced since, and its old medium be there again: what
// its successor has acknowledged, with 3, would be overlooked.
TEST_F(OpeningQuorumsTest, OnesThatMayHaveBeenReplacedDoNotPromise) {
  const Configuration before = Of(1, {1, 2, 3, 4}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 2);
  Add(1, after, 9);
  Add(2, before, 5);
  Add(4, before, 5);
  const absl::Status status = Judge(after);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // With 3 it is known that nothing has followed.
  Add(3, before, 5);
  EXPECT_TRUE(Judge(after).ok());
}

// Two changes were cut off on one member each. Members that both name, or that
// have the list before, were not replaced.
TEST_F(OpeningQuorumsTest, OnesThatACompetingListNamesWereNotReplaced) {
  const Configuration before = Of(1, {1, 2, 3, 4, 5}, 2);
  const Configuration competing = Of(2, {1, 2, 4}, 1);
  const Configuration after = Of(3, {2, 3, 5}, 3);
  Add(2, after, 9);
  for (const int node : {1, 3, 5}) Add(node, before, 5);
  EXPECT_TRUE(absl::IsUnavailable(Judge(after)));
  Add(4, competing, 7);
  const absl::Status status = Judge(after);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(promises_.unretired, ElementsAre(before));
  reports_[2].suspect = true;  // node 3; four others know what they did
  EXPECT_TRUE(Judge(after).ok());
  // Another replica in the place of node 1: that may have been shown by 2 and
  // 4, before they went on.
  reports_.back().configuration.members.front().incarnation = 7;
  EXPECT_TRUE(absl::IsUnavailable(Judge(after)));
}

// The second list may be in force by 3 and 4, who were not asked: 1, which lags
// behind it, does not count for the third one by what was before the second.
TEST_F(OpeningQuorumsTest, StaleMemberDoesNotSkipAList) {
  const Configuration first = Of(1, {1, 2, 3}, 2);
  const Configuration second = Of(2, {1, 2, 3, 4, 5}, 2);
  const Configuration third = Of(3, {1, 2, 5}, 2);
  Add(5, third, 9);
  Add(1, first, 5);
  Add(2, second, 7);
  EXPECT_TRUE(absl::IsUnavailable(Judge(third)));
  EXPECT_EQ(promises_.counts, 1u);
  // All of the second are there: it ends, and the first with it.
  Add(3, second, 7);
  EXPECT_TRUE(absl::IsUnavailable(Judge(third)));
  Add(4, second, 7);
  ASSERT_TRUE(Judge(third).ok());
  EXPECT_THAT(promises_.unretired, ElementsAre(first, second));
}

// Node 6 left in a list that followed the second, and is back with that: what
// its successor has acknowledged would be overlooked.
TEST_F(OpeningQuorumsTest, ListThatIsNotEndedSaysNothingOfWhoWasReplaced) {
  const Configuration first = Of(1, {1, 2, 3, 6}, 2);
  const Configuration second = Of(2, {1, 2, 3, 4, 5, 6}, 2);
  const Configuration third = Of(3, {1, 2, 5}, 2);
  Add(5, third, 9);
  Add(1, first, 5);
  for (const int node : {2, 6}) Add(node, second, 7);
  EXPECT_TRUE(absl::IsUnavailable(Judge(third)));
  const MembersChange change = ChangeOf(first, third);
  EXPECT_TRUE(absl::IsUnavailable(Judge(third, &change)));
}

// Node 3 was away when 5 came for 2, and its list can't be ended. Still it
// tells that nobody came for 1, who leaves now: three of four know what the
// second list did.
TEST_F(OpeningQuorumsTest, WhoSaysNothingForAListTellsWhoWasNotReplaced) {
  const Configuration first = Of(1, {1, 2, 3, 4}, 2);
  const Configuration second = Of(2, {1, 3, 4, 5}, 2);
  const Configuration third = Of(3, {3, 4, 5}, 2);
  Add(4, third, 9);
  for (const int node : {1, 5}) Add(node, second, 7);
  EXPECT_TRUE(absl::IsUnavailable(Judge(third)));
  Add(3, first, 5);
  const absl::Status status = Judge(third);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(promises_.unretired, ElementsAre(second));
  EXPECT_EQ(promises_.counts, 5u);  // 4 and 5
}

// An opening that counts those who lag behind brings them up before it shows
// the log: later they know by what list it was.
TEST_F(OpeningQuorumsTest, ListIsFinishedBeforeTheLogIsShown) {
  const Configuration before = Of(1, {1, 2, 3, 4, 5, 6, 7}, 2);
  const Configuration after = Of(2, {1, 2, 3, 4, 5, 6, 7}, 3);
  for (const int node : {2, 3, 4}) Add(node, after, 7);
  for (const int node : {1, 5}) Add(node, before, 5);
  ASSERT_TRUE(Judge(after).ok());  // the list before is retired
  EXPECT_EQ(ToInstall(after, false).to_show.back(),
            (InstallQuorum{after.members, 5}));
  reports_[3].configuration = reports_[4].configuration = after;
  ASSERT_TRUE(Judge(after).ok());
  EXPECT_EQ(ToInstall(after, false).to_show.back(),
            (InstallQuorum{after.members, 3}));
}

// Else two of the third list could open the log beside three of the first.
TEST_F(OpeningQuorumsTest, ListIsChangedOnlyByThoseWhoHaveIt) {
  const Configuration first = Of(1, {1, 2, 3, 4, 5}, 3);
  const Configuration second = Of(2, {1, 2, 3, 4, 5}, 2);
  const Configuration third = Of(3, {1, 2, 3}, 2);
  const MembersChange change = ChangeOf(second, third);
  Add(1, second, 7);
  for (const int node : {2, 3, 4}) Add(node, first, 5);
  const absl::Status status = Judge(third, &change);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("1 of the replicas that reported have themselves "
                              "configuration 2, 4 are needed"),
                    HasSubstr("let the log be opened by that list once")));
  EXPECT_TRUE(Judge(second).ok());
  for (int i = 1; i < 4; ++i) reports_[i].configuration = second;
  EXPECT_TRUE(Judge(third, &change).ok());
}

// Node 3 fails, and is replaced by 4; that is cut off on 1, while 2 and 3 go on
// by the list before, and then 3 is lost: 1 and 2 make the change again.
TEST_F(OpeningQuorumsTest, ChangeIsMadeAgainByThoseWhoHaveIt) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration after = Of(2, {1, 2, 4}, 2);
  const MembersChange change = ChangeOf(before, after);
  Add(1, after, 6);
  Add(2, before, 7);
  AddBlank(4, before);
  const absl::Status status = Judge(after, &change);
  EXPECT_TRUE(status.ok()) << status;
}

// A list is over once so many have another one that none of its quorums is
// left: that takes fewer than W where W is most of N.
TEST_F(OpeningQuorumsTest, ListIsEndedByFewerThanW) {
  const Configuration first = Of(1, {1, 2, 3, 4}, 3);
  const Configuration second = Of(2, {1, 2, 3}, 2);
  const Configuration third = MadeFrom(second, Of(3, {2, 3}, 2));
  Add(3, third, 8);
  Add(1, second, 7);
  Add(2, first, 5);
  const MembersChange change = ChangeOf(second, third);
  ASSERT_TRUE(Judge(third, &change).ok());
  EXPECT_THAT(promises_.unretired, ElementsAre(second, first));
  EXPECT_THAT(ToInstall(third, true).to_show,
              ElementsAre(InstallQuorum{third.members, 2},
                          InstallQuorum{third.members, 2},
                          InstallQuorum{third.members, 2}));
}

TEST_F(OpeningQuorumsTest, SuspectsDoNotKnowWhatAnOlderListDid) {
  const Configuration before = Of(1, {1, 2, 3, 4}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 2);
  Add(1, after, 6);
  for (const int node : {2, 3}) Add(node, before, 5);
  reports_[2].suspect = true;
  EXPECT_TRUE(absl::IsUnavailable(Judge(after)));
  EXPECT_EQ(promises_.counts, 1u);
  reports_[2].suspect = false;
  EXPECT_TRUE(Judge(after).ok());
}

// An operator who makes the change reads what to do.
TEST_F(OpeningQuorumsTest, ErrorSaysWhoStandsAgainstIt) {
  const Configuration before = Of(1, {1, 2, 3, 4}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 2);
  Add(1, after, 6);
  Add(2, before, 5);
  EXPECT_THAT(Judge(after).message(),
              AllOf(HasSubstr("node 2 has configuration 1"),
                    HasSubstr("2 reported, 3 must"),
                    HasSubstr("`alpheus reconfigure --from`"),
                    HasSubstr("stop the node")));
}

// W is lowered: the one that has it may not acknowledge alone.
TEST_F(OpeningQuorumsTest, UnretiredListIsRetiredBeforeTheLogIsShown) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 1);
  Add(1, after, 6);
  Add(2, before, 5);
  Add(3, before, 5);
  ASSERT_TRUE(Judge(after).ok());
  EXPECT_THAT(ToInstall(after, false).to_show,
              ElementsAre(InstallQuorum{after.members, 1},
                          InstallQuorum{after.members, 2},
                          InstallQuorum{after.members, 3}));
}

TEST_F(OpeningQuorumsTest, RetiredListIsForgotten) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration after = Of(2, {1, 2, 3}, 3);
  Add(1, after, 6);
  Add(2, after, 6);
  Add(3, before, 5);
  ASSERT_TRUE(Judge(after).ok());
  EXPECT_EQ(promises_.counts, 7u);
  EXPECT_THAT(promises_.unretired, IsEmpty());
}

// OPQ3: two of the four members of the new list have said something that
// counts.
TEST_F(OpeningQuorumsTest, NewcomerPromisesOnlyWhereAChangeGoesOn) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration after = MadeFrom(before, Of(2, {1, 2, 3, 4}, 3));
  Add(1, after, 6);
  Add(2, after, 6);
  AddBlank(4, before);
  const absl::Status status = Judge(after);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("2 of the replicas"));
  const MembersChange change = ChangeOf(before, after);
  EXPECT_TRUE(Judge(after, &change).ok());
  EXPECT_TRUE(promises_.is_half_done);
  // Only one of the old members: others may have gone on by the old list.
  reports_.erase(reports_.begin() + 1);
  AddBlank(2, before);
  EXPECT_FALSE(Judge(after, &change).ok());
}

// Both changed node 3 of {1, 2, 3} for another one. 1 has the rival's list, by
// which it and 2 may have gone on.
TEST_F(OpeningQuorumsTest, ChangeIsNotFinishedBesideACompetingOne) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration competing = Of(2, {1, 2, 5}, 2);
  const Configuration after = MadeFrom(before, Of(3, {1, 3, 6}, 2));
  const MembersChange change = ChangeOf(before, after);
  Add(1, competing, 6);
  Add(3, after, 7);
  AddBlank(6, before);
  const absl::Status status = Judge(after, &change);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(promises_.is_half_done);
}

TEST_F(OpeningQuorumsTest, SuspectsPromiseAndKnowNothing) {
  const Configuration c = Of(1, {1, 2, 3}, 2);
  Add(1, c, 5);
  Add(2, c, 5);
  reports_[1].suspect = true;
  EXPECT_FALSE(Judge(c).ok());
}

TEST_F(OpeningQuorumsTest, ChangeTakesTheQuorumsOfBoth) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration after = Of(2, {1, 2, 3, 4}, 3);
  const MembersChange change = ChangeOf(before, after);
  Add(1, before, 5);
  Add(2, before, 5);
  // Two of three, but two of four.
  EXPECT_TRUE(absl::IsUnavailable(Judge(after, &change)));
  AddBlank(4, before);
  ASSERT_TRUE(Judge(after, &change).ok());
  const recovery::InstallQuorums quorums = ToInstall(after, true);
  EXPECT_THAT(quorums.before_newcomers,
              ElementsAre(InstallQuorum{before.members, 2}));
  EXPECT_THAT(quorums.to_show, ElementsAre(InstallQuorum{before.members, 2},
                                           InstallQuorum{after.members, 3}));
}

// One that came with a change that was cut off holds nothing for the next one.
TEST_F(OpeningQuorumsTest, NewcomersOfTheChangeBeforeAreNoOldMembers) {
  const Configuration second = Of(2, {1, 2, 3, 4}, 3);
  const Configuration third = Of(3, {1, 2, 4}, 2);
  const MembersChange change = ChangeOf(second, third);
  Add(1, second, 6);
  Add(2, second, 6);
  Add(3, second, 6);
  AddBlank(4, Of(1, {1, 2, 3}, 2));
  ASSERT_TRUE(Judge(third, &change).ok());
  EXPECT_THAT(ToInstall(third, true).before_newcomers,
              ElementsAre(InstallQuorum{{At(1), At(2)}, 3}));
}

TEST_F(OpeningQuorumsTest, TargetNamesWhoAnswersAndIsBlank) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  Configuration after = Of(1, {1, 2, 3}, 2);
  MembersChange change = ChangeOf(before, after);
  change.replaced = {NodeId(3)};
  Add(1, before, 5);
  Add(2, before, 5);
  AddBlank(3, before);
  reports_[2].incarnation = 999;
  ASSERT_TRUE(Judge(before).ok());
  after.members[2].incarnation = 999;
  after.made_from = before;
  EXPECT_EQ(*TargetOf(change, decision_, reports_), after);
  // Made again it is what it was.
  for (recovery::StateReport& report : reports_) report.configuration = after;
  ASSERT_TRUE(Judge(after).ok());
  EXPECT_EQ(*TargetOf(change, decision_, reports_), after);
  for (recovery::StateReport& report : reports_) report.configuration = before;
  ASSERT_TRUE(Judge(before).ok());
  // One that is not there yet is waited for; one that holds something, not.
  MembersChange add = ChangeOf(before, Of(2, {1, 2, 3, 4}, 3));
  EXPECT_TRUE(absl::IsUnavailable(TargetOf(add, decision_, reports_).status()));
  Add(4, before, 3);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(TargetOf(add, decision_, reports_).status()));
}

// The change was checked against the list that the operator named.
TEST_F(OpeningQuorumsTest, CompetingListOfAnotherSizeIsNotChanged) {
  const Configuration before = Of(1, {1, 2, 3}, 2);
  const Configuration competing = Of(2, {1, 2, 3, 4, 5}, 3);
  for (const int node : {1, 2, 3}) Add(node, competing, 5);
  ASSERT_TRUE(Judge(competing).ok());
  const MembersChange change = ChangeOf(before, Of(2, {1, 2}, 2));
  const auto target = TargetOf(change, decision_, reports_);
  EXPECT_TRUE(absl::IsFailedPrecondition(target.status())) << target.status();
  EXPECT_THAT(target.status().message(),
              HasSubstr("the log has configuration 2 of nodes 1, 2, 3, 4, 5 (N "
                        "= 5, W = 3), expected configuration 1 of nodes 1, 2, "
                        "3 (N = 3, W = 2) or, if the change was cut off, "
                        "configuration 2 of nodes 1, 2 (N = 2, W = 2)"));
}

}  // namespace
}  // namespace alpheus::testing
