// SPDX-License-Identifier: Apache-2.0
#include "recovery/deletion/log_deletion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/recovery/deletion/deletion_world.h"

namespace alpheus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Code = absl::StatusCode;

constexpr int64_t kLong = 50'000'000;  // nanoseconds

// P-D1 to P-D4.
TEST(LogDeletionTest, DeletedLogIsRemovedAndOpensNoMore) {
  DeletionWorld deletion({});
  deletion.OpenAndWrite("one", {1, 2});
  const recovery::LogDeletion& done = deletion.Delete();
  ASSERT_TRUE(done.status().ok()) << done.status();
  EXPECT_TRUE(done.is_decided());
  EXPECT_THAT(done.removed(), ElementsAre(NodeId(1), NodeId(2), NodeId(3)));
  EXPECT_TRUE(done.left().empty());
  const auto opened = deletion.Open();
  EXPECT_EQ(opened->status().code(), Code::kNotFound) << opened->status();
  EXPECT_THAT(opened->status().message(), HasSubstr("was deleted"));
  EXPECT_EQ(recovery::DeletionBy(opened->status()), Deletion::kDecided);
  // A member with a replica of its own is no better off.
  for (int node = 1; node <= 3; ++node) {
    EXPECT_EQ(deletion.DeletionOf(node), Deletion::kDecided);
  }
  // Given again it says the same.
  EXPECT_TRUE(deletion.Delete().status().ok());
}

// P-D4, P-D1: whenever the operator's process is killed, the log opens with all
// its records, or the deletion is decided. Given again it goes on.
TEST(LogDeletionTest, CutOffAnywhereItLosesNothingOrIsDecided) {
  bool is_through = false;
  int opened = 0;
  int decided = 0;
  for (int steps = 1; !is_through; ++steps) {
    DeletionWorld deletion({});
    deletion.OpenAndWrite("one", {1, 2});
    deletion.Begin();
    for (int i = 0; i < steps && !is_through; ++i) {
      is_through = !deletion.Step();
    }
    deletion.Kill();
    deletion.Pass(1'000'000);
    const int marked = deletion.CountMarked(3);
    bool is_removed = false;
    for (int node = 1; node <= 3; ++node) {
      is_removed |= deletion.DeletionOf(node) == Deletion::kDecided;
    }
    SCOPED_TRACE(::testing::Message() << steps << " steps, " << marked);
    ASSERT_TRUE(!is_removed || marked >= 2) << "LDL2";
    const auto primary = deletion.Open();
    if (marked < 2) {
      ++opened;
      ASSERT_TRUE(primary->status().ok()) << primary->status();
      EXPECT_EQ(primary->opened->start.end.lsn, Lsn(2));
    } else {
      ++decided;
      ASSERT_EQ(primary->status().code(), Code::kNotFound) << primary->status();
    }
    const recovery::LogDeletion& again = deletion.Delete();
    ASSERT_TRUE(again.status().ok()) << again.status();
    EXPECT_EQ(again.removed().size(), 3u);
    ASSERT_LT(steps, 10'000);
  }
  EXPECT_GT(opened, 0);
  EXPECT_GT(decided, 0);
}

// P-D4, LDL2: two members go at any moment, so that one mark alone may be made.
TEST(LogDeletionTest, OneMarkRemovesNothingWhereverTheOthersGo) {
  bool is_through = false;
  int alone = 0;
  for (int steps = 1; !is_through; ++steps) {
    DeletionWorld deletion({});
    deletion.OpenAndWrite("one", {1, 2});
    deletion.Begin();
    for (int i = 0; i < steps && !is_through; ++i) {
      is_through = !deletion.Step();
    }
    for (const int node : {2, 3}) deletion.world().Crash(node);
    while (deletion.Step()) {
    }
    for (const int node : {2, 3}) deletion.world().Restart(node);
    const int marked = deletion.CountMarked(3);
    if (marked == 1) ++alone;
    ASSERT_TRUE(marked >= 2 || deletion.DeletionOf(1) != Deletion::kDecided)
        << steps << " steps";
    ASSERT_EQ(deletion.deletion().status().ok(),
              deletion.deletion().is_decided());
  }
  EXPECT_GT(alone, 0);
}

// P-D3: N - OQ members may be away. P-D5: one that comes back opens nothing,
// and removes its own records.
TEST(LogDeletionTest, MemberThatWasAwayLearnsOfIt) {
  DeletionWorld deletion({.inquires_ns = 1'000'000});
  deletion.OpenAndWrite("one", {1, 2, 3});
  deletion.world().Crash(3);
  const recovery::LogDeletion& done = deletion.Delete();
  ASSERT_TRUE(done.status().ok()) << done.status();
  EXPECT_THAT(done.left(), ElementsAre(NodeId(3)));
  deletion.Kill();
  deletion.world().Restart(3);
  EXPECT_EQ(deletion.DeletionOf(3), Deletion::kNone);
  EXPECT_EQ(deletion.Open()->status().code(), Code::kNotFound);
  deletion.Pass(kLong);
  EXPECT_EQ(deletion.DeletionOf(3), Deletion::kDecided);
}

// LDL4: a member that goes after the decision, before it has removed anything,
// delays the end by its own time alone.
TEST(LogDeletionTest, MemberThatGoesDuringTheRemovalIsLeft) {
  DeletionWorld deletion({});
  deletion.OpenAndWrite("one", {1, 2, 3});
  deletion.Begin();
  while (!deletion.deletion().is_decided()) ASSERT_TRUE(deletion.Step());
  deletion.world().Crash(3);
  while (deletion.Step()) {
  }
  EXPECT_TRUE(deletion.deletion().status().ok());
  EXPECT_THAT(deletion.deletion().left(), ElementsAre(NodeId(3)));
}

// A member that missed a deletion, and whose owner lost power with no news of
// it to anybody.
std::unique_ptr<DeletionWorld> MemberWithALostOwner(int64_t again_ns_max) {
  auto deletion = std::make_unique<DeletionWorld>(OpeningWorld::Options{
      .inquires_ns = 1'000'000, .inquires_again_ns_max = again_ns_max});
  deletion->OpenAndWrite("one", {1, 2, 3});
  model::SimNetwork& network = deletion->world().network();
  network.Crash(deletion->world().outsider());
  network.Cut(deletion->host(), 2);
  const recovery::LogDeletion& done = deletion->Delete();
  EXPECT_TRUE(done.status().ok()) << done.status();
  EXPECT_THAT(done.left(), ElementsAre(NodeId(3)));
  deletion->Kill();
  return deletion;
}

// P-D5: the adapter of its owner never ends the connection.
TEST(LogDeletionTest, MemberWhoseOwnerLostPowerLearnsOfIt) {
  const auto deletion = MemberWithALostOwner(4'000'000);
  deletion->Pass(kLong);
  EXPECT_EQ(deletion->DeletionOf(3), Deletion::kDecided);
}

// DLI2: not by an early round. The rounds until then are many.
TEST(LogDeletionTest, LogWithAnOwnerIsAskedForSeldom) {
  const auto deletion = MemberWithALostOwner(20 * kLong);
  deletion->Pass(kLong);
  EXPECT_EQ(deletion->DeletionOf(3), Deletion::kNone);
  deletion->Pass(100 * kLong);
  EXPECT_EQ(deletion->DeletionOf(3), Deletion::kDecided);
}

// P-D5: its own mark counts, too. All of two members are needed here.
TEST(LogDeletionTest, MarkedMemberThatMissedTheRemovalLearnsOfIt) {
  DeletionWorld deletion(
      {.members = 2, .write_quorum = 2, .inquires_ns = 1'000'000});
  deletion.OpenAndWrite("one", {1, 2});
  for (const int node : {1, 2}) {
    ASSERT_TRUE(
        deletion.world().replica(node).MarkDeleted(Deletion::kMarked).ok());
    deletion.world().Crash(node);
    deletion.world().Restart(node);
  }
  deletion.Pass(kLong);
  EXPECT_EQ(deletion.DeletionOf(1), Deletion::kDecided);
  EXPECT_EQ(deletion.DeletionOf(2), Deletion::kDecided);
}

// P-D5: a mark is no decision, whoever tells it, and however often.
TEST(LogDeletionTest, MemberKeepsItsRecordsOnAMereMark) {
  DeletionWorld deletion({.inquires_ns = 1'000'000});
  deletion.OpenAndWrite("one", {1, 2, 3});
  ASSERT_TRUE(deletion.world().replica(1).MarkDeleted(Deletion::kMarked).ok());
  for (const int node : {1, 2, 3}) {  // nobody has the log open any more
    deletion.world().Crash(node);
    deletion.world().Restart(node);
  }
  deletion.Pass(kLong);
  EXPECT_EQ(deletion.DeletionOf(1), Deletion::kMarked);
  EXPECT_EQ(deletion.DeletionOf(2), Deletion::kNone);
  EXPECT_EQ(deletion.DeletionOf(3), Deletion::kNone);
  EXPECT_TRUE(deletion.Open()->status().ok());
}

// P-D5: nor is a second one that is of another list.
TEST(LogDeletionTest, MarkOfAnotherListDoesNotCount) {
  DeletionWorld deletion({.inquires_ns = 1'000'000});
  deletion.world().Reformat(1);
  for (const int node : {1, 2}) {
    ASSERT_TRUE(
        deletion.world().replica(node).MarkDeleted(Deletion::kMarked).ok());
  }
  deletion.Pass(kLong);
  EXPECT_EQ(deletion.DeletionOf(3), Deletion::kNone);
}

// P-D2. The mark of a member counts for the deletion that comes next.
TEST(LogDeletionTest, ItGoesOnWithTheMarksThatItFinds) {
  DeletionWorld deletion({});
  deletion.OpenAndWrite("one", {1, 2, 3});
  ASSERT_TRUE(deletion.world().replica(1).MarkDeleted(Deletion::kMarked).ok());
  deletion.world().Crash(3);
  const recovery::LogDeletion& done = deletion.Delete();
  ASSERT_TRUE(done.status().ok()) << done.status();
  EXPECT_THAT(done.removed(), ElementsAre(NodeId(1), NodeId(2)));
}

// LDL1: a deletion that can't be decided marks nobody.
TEST(LogDeletionTest, TooFewMembersAreLeftAsTheyAre) {
  DeletionWorld deletion({});
  deletion.OpenAndWrite("one", {1, 2});
  deletion.world().Crash(2);
  deletion.world().Crash(3);
  const recovery::LogDeletion& done = deletion.Delete();
  EXPECT_EQ(done.status().code(), Code::kUnavailable) << done.status();
  EXPECT_THAT(done.status().message(), HasSubstr("no record was removed"));
  EXPECT_EQ(deletion.DeletionOf(1), Deletion::kNone);
}

// LDL1: of three members with three lists none is marked.
TEST(LogDeletionTest, MembersOfDifferentListsAreLeftAsTheyAre) {
  DeletionWorld deletion({});
  deletion.world().Reformat(1);
  deletion.world().Reformat(2);
  const recovery::LogDeletion& done = deletion.Delete();
  EXPECT_EQ(done.status().code(), Code::kUnavailable) << done.status();
  EXPECT_THAT(done.status().message(), HasSubstr("not completed"));
  EXPECT_EQ(deletion.CountMarked(3), 0);
}

// P-D1: another process that was promised a higher epoch in between keeps the
// log. A further attempt goes above it.
TEST(LogDeletionTest, HigherBallotInBetweenKeepsTheLog) {
  DeletionWorld deletion({});
  deletion.OpenAndWrite("one", {1, 2});
  bool is_outbid = false;
  deletion.before_turn = [&] {
    const auto& promised = deletion.world().replica(1).superline();
    if (is_outbid || promised.promised_node != deletion.node()) return;
    is_outbid = true;
    const quorum::Promise above{
        Epoch(promised.promised_epoch.value + (uint64_t{1} << 33)),
        {NodeId(9), 9}};
    for (int node = 1; node <= 3; ++node) {
      ASSERT_TRUE(deletion.world().replica(node).AcceptPromise(above).ok());
    }
  };
  const recovery::LogDeletion& done = deletion.Delete();
  EXPECT_TRUE(is_outbid);
  EXPECT_EQ(done.status().code(), Code::kUnavailable) << done.status();
  EXPECT_EQ(deletion.CountMarked(3), 0);
  EXPECT_TRUE(deletion.Delete().status().ok());
}

TEST(LogDeletionTest, LogThatIsNowhereIsNotFound) {
  DeletionWorld deletion({});
  recovery::LogDeletionOptions options = deletion.Options();
  options.log_id = {77, 77};
  deletion.Begin(options);
  while (deletion.Step()) {
  }
  EXPECT_EQ(deletion.deletion().status().code(), Code::kNotFound)
      << deletion.deletion().status();
}

TEST(LogDeletionTest, OlderListOfMembersIsRefused) {
  DeletionWorld deletion({});
  recovery::LogDeletionOptions options = deletion.Options();
  options.configuration_id = 0;
  deletion.Begin(options);
  while (deletion.Step()) {
  }
  EXPECT_EQ(deletion.deletion().status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(deletion.CountMarked(3), 0);
}

TEST(LogDeletionTest, WrongMembersAndNoDeadlineAreRefused) {
  DeletionWorld deletion({});
  quorum::StaticMembership ballots =
      *quorum::StaticMembership::Make({NodeId(9), 1});
  Random random(1);
  const auto start = [&](const recovery::LogDeletionOptions& options) {
    return recovery::LogDeletion::Start(deletion.world().network().fabric(5),
                                        deletion.world().network().clock(),
                                        random, ballots, options)
        .status()
        .code();
  };
  recovery::LogDeletionOptions options = deletion.Options();
  options.peers.pop_back();
  EXPECT_EQ(start(options), Code::kInvalidArgument);
  options.peers.push_back(options.peers.front());
  EXPECT_EQ(start(options), Code::kInvalidArgument);
  options = deletion.Options();
  options.deadline = Deadline();
  EXPECT_EQ(start(options), Code::kInvalidArgument);
}

}  // namespace
}  // namespace alpheus::testing
