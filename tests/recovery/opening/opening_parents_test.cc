// SPDX-License-Identifier: Apache-2.0
// The list that a list was made from, its parent, and the part that it has in
// an opening (OPQ7 to OPQ9 of opening_quorums.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recovery/opening/opening_quorums.h"
#include "tests/recovery/opening/opening_quorums_fixture.h"

namespace alpheus::testing {

using recovery::ParentState;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using OpeningParentsTest = OpeningQuorumsFixture;

// By the first list, which an operator names, node 1 has promised; by the
// second one 2 and 3, who are not asked, may be writing.
TEST_F(OpeningParentsTest, ListKnowsWhatItWasMadeFrom) {
  const Configuration first = Of(1, {1}, 1);
  const Configuration second = MadeFrom(first, Of(2, {1, 2, 3}, 2));
  const Configuration third = MadeFrom(second, Of(3, {1, 2, 4}, 2));
  const recovery::MembersChange change = ChangeOf(first, third);
  Add(1, third, 9);
  AddBlank(4, second);
  const absl::Status status = Judge(third, &change);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(promises_.is_half_done);
  Add(2, second, 7);
  EXPECT_TRUE(Judge(third, &change).ok());
  EXPECT_TRUE(promises_.is_half_done);
  // Newcomers promise nothing for a list whose region does not name its parent.
  reports_[0].configuration.made_from.reset();
  EXPECT_TRUE(Judge(reports_[0].configuration, &change).ok());
  EXPECT_FALSE(promises_.is_half_done);
}

// Nobody who answers has the second list. The third grew to 1 and 2, and a
// rival to 4 and 5, by attempts to end it that were cut off; 3 counts for both,
// as what it has is over. An opening by one of them ends the second first, and
// with it the other.
TEST_F(OpeningParentsTest, WhatAListWasMadeFromIsRetiredThoughNobodyHasIt) {
  const Configuration first = Of(1, {1, 2, 3, 4, 5}, 1);
  const Configuration second = MadeFrom(first, Of(2, {1, 2, 3, 4, 5}, 3));
  const Configuration third = MadeFrom(second, Of(3, {1, 2, 3, 6}, 2));
  for (const int node : {1, 2}) Add(node, third, 6);
  Add(3, first, 1);
  AddBlank(6, second);
  ASSERT_TRUE(Judge(third).ok());
  EXPECT_EQ(promises_.parent, ParentState::kCanRetire);
  EXPECT_THAT(promises_.unretired, ElementsAre(second));
  const recovery::InstallQuorum all{{At(1), At(2), At(3)}, 3};
  EXPECT_EQ(ToInstall(third, false).before_newcomers.back(), all);
  // When an opening quorum has the third one it is over.
  reports_[2].configuration = third;
  ASSERT_TRUE(Judge(third).ok());
  EXPECT_EQ(promises_.parent, ParentState::kRetired);
  EXPECT_THAT(promises_.unretired, IsEmpty());
}

// 4 and 5 may have what they had with 2 of those who answer.
TEST_F(OpeningParentsTest, WhatAListWasMadeFromMayBeInForce) {
  const Configuration first = Of(1, {1, 2, 3, 4, 5}, 1);
  const Configuration second = MadeFrom(first, Of(2, {1, 2, 3, 4, 5}, 4));
  const Configuration third = MadeFrom(second, Of(3, {1, 2, 3, 4}, 3));
  Add(3, third, 6);
  for (const int node : {1, 2}) Add(node, first, 1);
  const absl::Status status = Judge(third);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(promises_.parent, ParentState::kMayBeInForce);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("1 of the replicas that reported have themselves "
                              "configuration 3"),
                    HasSubstr("2 of nodes 1, 2, 3, 4, 5"),
                    HasSubstr("3 reported, 4 must"), HasSubstr("--from")));
  Add(4, second, 5);
  EXPECT_TRUE(Judge(third).ok());
}

// The log was shown by the third list on 1, 2, 3 and 6. 1 and 2 are lost, and 4
// is back with the first list: it says as little of the second as it has to.
TEST_F(OpeningParentsTest, NewcomerProvesThatTheListBeforeIsOver) {
  const Configuration first = Of(1, {1, 2, 3, 4, 5}, 1);
  const Configuration second = MadeFrom(first, Of(2, {1, 2, 3, 4, 5}, 3));
  const Configuration third = MadeFrom(second, Of(3, {1, 2, 3, 4, 6}, 3));
  for (const int node : {3, 6}) Add(node, third, 3);
  Add(4, first, 1);
  const absl::Status status = Judge(third);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(promises_.have, 2u);
}

// 1 and 2 have the list by an older epoch than that by which 3 to 6 opened the
// log by the one before, of the same number: they may go back to it.
TEST_F(OpeningParentsTest, NewcomersBeginWhenALateQuorumHasInstalled) {
  const Configuration before = Of(1, {1, 2, 3, 4, 5, 6, 7}, 4);
  const Configuration after = MadeFrom(before, Of(1, {1, 2, 3, 4, 5, 6, 8}, 4));
  recovery::MembersChange change = ChangeOf(before, after);
  for (const int node : {1, 2}) Add(node, after, 2);
  for (const int node : {3, 4}) Add(node, after, 4);
  AddBlank(8, before);
  ASSERT_TRUE(Judge(after, &change).ok());
  EXPECT_TRUE(promises_.is_half_done);
  EXPECT_EQ(promises_.parent, ParentState::kRetired);
  const recovery::InstallQuorum late{{At(1), At(2), At(3), At(4), At(5), At(6)},
                                     4};
  EXPECT_THAT(ToInstall(after, true).before_newcomers, ElementsAre(late));
  // When the first of them has it, it was so.
  reports_.pop_back();
  Add(8, after, 5);
  ASSERT_TRUE(Judge(after, &change).ok());
  EXPECT_THAT(ToInstall(after, true).before_newcomers, IsEmpty());
}

// Two nodes were to be added, which was cut off on 1. Node 2 went on by the
// first list with 3, which is lost since: 1 and 2 are its opening quorum, and
// need not be so many that the list of five ends (OPQ9).
TEST_F(OpeningParentsTest, WhoHasTheTargetNeedNotBeRetired) {
  const Configuration first = Of(1, {1, 2, 3}, 2);
  const Configuration grown = MadeFrom(first, Of(2, {1, 2, 3, 4, 5}, 3));
  const recovery::MembersChange change = ChangeOf(first, grown);
  Add(1, grown, 2);
  Add(2, first, 3);
  for (const int node : {4, 5}) AddBlank(node, first);
  const absl::Status status = Judge(grown, &change);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(promises_.unretired, IsEmpty());
  EXPECT_THAT(ToInstall(grown, true).before_newcomers,
              ElementsAre(recovery::InstallQuorum{{At(1), At(2), At(3)}, 2}));
}

// Node 1 has the list as it was made from the first one, and cut off; node 2 as
// it was made again from the second. By the second, which has ended the first,
// nobody can open the log any more.
TEST_F(OpeningParentsTest, ListThatWasMadeTwiceDoesNotCompeteWithItself) {
  const Configuration first = Of(1, {1, 2, 3}, 2);
  const Configuration second = MadeFrom(first, Of(2, {1, 2, 3}, 2));
  const Configuration third = MadeFrom(second, Of(3, {1, 2, 4, 5}, 3));
  const recovery::MembersChange change = ChangeOf(second, third);
  Add(1, MadeFrom(first, third), 2);
  Add(2, third, 5);
  Add(3, second, 4);
  for (const int node : {4, 5}) AddBlank(node, second);
  const absl::Status status = Judge(third, &change);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(promises_.parent, ParentState::kRetired);
  EXPECT_EQ(promises_.have, 1u);
}

// Two nodes were to be added, which was cut off on 1; then 3 was to be replaced
// by one of them, and that was cut off on 2 (OPQ8).
TEST_F(OpeningParentsTest, BlankMembersRetireAListThatTheyNeverHad) {
  const Configuration first = Of(1, {1, 2, 3}, 2);
  const Configuration grown = MadeFrom(first, Of(2, {1, 2, 4, 5}, 2));
  const Configuration third = MadeFrom(first, Of(3, {1, 2, 4}, 2));
  Add(1, grown, 2);
  Add(2, third, 5);
  Add(3, first, 3);
  for (const int node : {4, 5}) AddBlank(node, first);
  ASSERT_TRUE(Judge(third).ok());
  EXPECT_THAT(promises_.unretired, ElementsAre(grown, first));
  reports_.pop_back();  // node 5: three of four are enough
  EXPECT_TRUE(Judge(third).ok());
  reports_.pop_back();
  EXPECT_TRUE(absl::IsUnavailable(Judge(third)));
}

// Node 4 may stand in the place of one who acknowledged by the first list.
TEST_F(OpeningParentsTest, BlankMembersRetireNothingWhoseParentMayBeInForce) {
  const Configuration first = Of(1, {1, 2, 3, 6}, 2);
  const Configuration grown = MadeFrom(first, Of(2, {1, 2, 4, 5}, 2));
  const Configuration third = MadeFrom(grown, Of(3, {1, 2, 4}, 2));
  Add(1, grown, 4);
  Add(2, third, 5);
  for (const int node : {4, 5}) AddBlank(node, first);
  const absl::Status status = Judge(third);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(promises_.counts, 2u);
}

}  // namespace
}  // namespace alpheus::testing
