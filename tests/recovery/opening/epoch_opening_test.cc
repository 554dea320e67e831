// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/epoch_opening.h"

#include <algorithm>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "quorum/membership/static_membership.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {

using recovery::EpochOpeningOptions;
using recovery::Message;
using recovery::OpenedBackup;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Primary = OpeningWorld::Primary;
using Payloads = std::vector<std::string>;

// All members, or so many of the first.
std::vector<int> Nodes(int count) {
  std::vector<int> nodes;
  for (int node = 1; node <= count; ++node) nodes.push_back(node);
  return nodes;
}

// With the scripted member and with the real server.
class EpochOpeningWithServerTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Scripted, EpochOpeningWithServerTest,
                         ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Real, EpochOpeningWithServerTest,
                         ::testing::Values(true));

TEST_P(EpochOpeningWithServerTest, FreshLogOpensOnAnyNumberOfReplicas) {
  for (int members = 1; members <= 5; ++members) {
    for (int w = 1; w <= members; ++w) {
      SCOPED_TRACE(::testing::Message() << "N " << members << " W " << w);
      OpeningWorld world(
          {.members = members, .write_quorum = w, .real_server = GetParam()});
      const auto primary = world.Open(0);
      ASSERT_TRUE(primary->status().ok()) << primary->status();
      const recovery::EpochOpened& opened = *primary->opened;
      EXPECT_EQ(quorum::BallotCounter(opened.epoch), 1u);
      EXPECT_EQ(opened.previous_epoch, Epoch(0));
      EXPECT_EQ(opened.head, LogPosition());
      EXPECT_EQ(opened.end, LogPosition());
      EXPECT_EQ(opened.start.superline.log_epoch, opened.epoch);
      EXPECT_TRUE(members == 1 || opened.promised_ns > 0);
      EXPECT_GE(opened.chosen_ns, opened.promised_ns);
      EXPECT_GE(opened.installed_ns, opened.chosen_ns);
      EXPECT_THAT(opened.repairs, IsEmpty());
      EXPECT_THAT(opened.not_installed, IsEmpty());
      EXPECT_EQ(opened.backups.size(), static_cast<size_t>(members) - 1);
      for (const int node : Nodes(members)) {
        EXPECT_EQ(world.replica(node).superline().log_epoch, opened.epoch);
        EXPECT_TRUE(GetParam() || world.server(node).sessions() == (node != 1));
      }
    }
  }
}

// The sessions of an opening carry records and acks.
TEST_P(EpochOpeningWithServerTest, SessionsReplicateWhatIsAppended) {
  OpeningWorld world({.real_server = GetParam()});
  const auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.Append(*primary, "a", {1});
  const LogPosition& end = primary->opened->start.end;
  for (OpenedBackup& backup : primary->opened->backups) {
    ASSERT_TRUE(backup.session->Advance({end.lsn - 1, end.offset}).ok());
  }
  for (int i = 0; i < 1000; ++i) world.Step({primary.get()});
  for (const OpenedBackup& backup : primary->opened->backups) {
    EXPECT_EQ(backup.session->acked_lsn(), Lsn(1));
  }
  for (const int node : Nodes(3)) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a"));
  }
}

TEST_P(EpochOpeningWithServerTest, RecordsOfAMinorityAreExtended) {
  OpeningWorld world({.real_server = GetParam()});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.Append(*primary, "a", {1, 2, 3});
  world.Append(*primary, "b", {2});
  primary.reset();
  const auto next = world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->end.lsn, Lsn(3));
  EXPECT_EQ(next->opened->repairs.size(), 2u);
  for (const int node : Nodes(3)) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a", "b"));
  }
}

// Gaps on different replicas, a PAD among what is copied, pieces smaller than
// a record, and a source that is not the own replica.
TEST_P(EpochOpeningWithServerTest, GapsAreFilledFromWhoeverHasThem) {
  OpeningWorld world(
      {.seed = 3, .message_bytes_max = 65536, .real_server = GetParam()});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  Payloads expected;
  const std::vector<std::vector<int>> holders = {{1, 2}, {2, 3}, {1, 3},
                                                 {3},    {2},    {1}};
  for (size_t i = 0; i < holders.size(); ++i) {
    expected.push_back(std::string(200 + i, static_cast<char>('a' + i)));
    world.Append(*primary, expected.back(), holders[i]);
  }
  primary.reset();
  const auto next = world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  for (const int node : Nodes(3)) EXPECT_EQ(world.Payloads(node), expected);
}

TEST_P(EpochOpeningWithServerTest, CorruptRecordIsRepairedFromAPeer) {
  for (const int damaged : {1, 2}) {
    OpeningWorld world({.real_server = GetParam()});
    auto primary = world.Open(0);
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    world.Append(*primary, "a", {1, 2, 3});
    world.Append(*primary, "b", {1, 2, 3});
    primary = world.Open(0);  // proves both
    ASSERT_TRUE(primary->status().ok()) << primary->status();
    world.Damage(damaged, world.positions[0]);
    const auto next = world.Open(0);
    ASSERT_TRUE(next->status().ok()) << next->status();
    EXPECT_EQ(next->opened->repairs.size(), 1u);
    for (const int node : Nodes(3)) {
      EXPECT_THAT(world.Payloads(node), ElementsAre("a", "b"));
    }
  }
}

TEST_P(EpochOpeningWithServerTest, TornTailsAreRepairedOrDropped) {
  OpeningWorld world({.real_server = GetParam()});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.Append(*primary, "a", {1, 2, 3});
  world.Append(*primary, "b", {1, 2});
  world.Append(*primary, "c", {1, 3});
  world.Damage(1, world.positions[1]);
  world.Damage(1, world.positions[2]);
  world.Damage(3, world.positions[2]);
  const auto next = world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  for (const int node : Nodes(3)) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a", "b"));
  }
}

// P-H13: a record that was dropped and overwritten elsewhere stays dead; its
// replica is marked before it loses it.
struct Diverged {
  OpeningWorld world{{}};
  bool marked = false;
  bool intact_when_marked = false;

  Diverged() {
    auto primary = world.Open(0);
    EXPECT_TRUE(primary->status().ok()) << primary->status();
    world.Append(*primary, "dead", {3});
    primary.reset();
    world.Crash(3);
    primary = world.Open(0);
    EXPECT_TRUE(primary->status().ok()) << primary->status();
    world.Append(*primary, "alive", {1, 2});
    primary.reset();
    world.Restart(3);
    world.server(3).on_request = [this](const Message& message) {
      if (const auto* open = std::get_if<recovery::OpenForRepair>(&message)) {
        marked = open->set_repairing;
        intact_when_marked = world.Payloads(3) == Payloads{"dead"};
      }
      return true;
    };
  }
};

TEST(EpochOpeningTest, DivergentTailIsMarkedThenOverwritten) {
  Diverged diverged;
  const auto next = diverged.world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_TRUE(diverged.marked);
  EXPECT_TRUE(diverged.intact_when_marked);
  for (const int node : Nodes(3)) {
    EXPECT_THAT(diverged.world.Payloads(node), ElementsAre("alive"));
    EXPECT_FALSE(diverged.world.replica(node).superline().repairing);
  }
  EXPECT_THAT(next->opened->repairs,
              ElementsAre(HasSubstr("over others that were not chosen")));
}

TEST(EpochOpeningTest, OwnDivergentTailIsOverwrittenLast) {
  Diverged diverged;
  const auto next = diverged.world.Open(2);
  ASSERT_TRUE(next->status().ok()) << next->status();
  for (const int node : Nodes(3)) {
    EXPECT_THAT(diverged.world.Payloads(node), ElementsAre("alive"));
    EXPECT_FALSE(diverged.world.replica(node).superline().repairing);
  }
}

// Destination's ring changes only after it said that it is open for repair.
TEST(EpochOpeningTest, NothingIsWrittenBeforeItIsOpenedForRepair) {
  Diverged diverged;
  const auto next = diverged.world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->backups.size(), 2u);
  EXPECT_TRUE(diverged.intact_when_marked);
}

// SUP5: at no moment has the own ring a record that the next opening would not
// look for, should this one end there.
TEST(EpochOpeningTest, OwnCeilingIsRaisedBeforeTheOwnRepair) {
  OpeningWorld world({});
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.ceiling_step_bytes = 2 * kLineBytes;
  auto primary = world.Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  for (const int node : {2, 3}) {
    ASSERT_TRUE(world.replica(node)
                    .RaiseCeiling(primary->opened->epoch, RingOffset(1024))
                    .ok());
  }
  const Payloads payloads(8, "late");
  for (const std::string& payload : payloads) {
    world.Append(*primary, payload, {2, 3});
  }
  primary.reset();
  ASSERT_EQ(world.replica(1).superline().ceiling, RingOffset(2 * kLineBytes));
  world.on_event = [&world] {
    const auto state = ReadRegionState(world.pmem(1).region(), "own");
    ASSERT_TRUE(state.ok()) << state.status();
    const ScanInput whole = ScanInputOf(world.pmem(1).region(), *state);
    EXPECT_LE(ScanLog(whole).end.offset, state->superline.ceiling);
  };
  const auto next = world.Open(0, options);
  world.on_event = {};
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(world.Payloads(1), payloads);
}

TEST_P(EpochOpeningWithServerTest, BlankReplicaIsLeftAlone) {
  OpeningWorld world({.real_server = GetParam()});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.Append(*primary, "a", {1, 2, 3});
  primary.reset();
  world.Reformat(3);
  const auto next = world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->backups.size(), 1u);
  ASSERT_EQ(next->opened->not_installed.size(), 1u);
  EXPECT_EQ(next->opened->not_installed[0].node, NodeId(3));
  EXPECT_THAT(world.Payloads(3), IsEmpty());
}

TEST(EpochOpeningTest, OwnBlankReplicaOpensNothing) {
  OpeningWorld world({});
  world.Reformat(1);
  const auto primary = world.Open(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(primary->status()))
      << primary->status();
}

TEST_P(EpochOpeningWithServerTest, SuspectReplicaIsFilledAgain) {
  OpeningWorld world({.real_server = GetParam()});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  world.Append(*primary, "a", {1, 2});
  primary.reset();
  world.Crash(3);
  world.Restart(3, /*suspect=*/true);
  const auto next = world.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->backups.size(), 2u);
  for (const int node : Nodes(3)) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a"));
  }
}

TEST_P(EpochOpeningWithServerTest, PrimaryWithoutReplicaFillsACache) {
  OpeningWorld world({.real_server = GetParam()});
  auto primary = world.Open(3);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->backups.size(), 3u);
  world.Append(*primary, "a", {1, 2});
  world.Append(*primary, "b", {2, 3});
  primary.reset();
  const auto next = world.Open(3);
  ASSERT_TRUE(next->status().ok()) << next->status();
  for (const int node : Nodes(3)) {
    EXPECT_THAT(world.Payloads(node), ElementsAre("a", "b"));
  }
  EXPECT_EQ(next->opened->start.end, next->opened->end);
  EXPECT_EQ(next->opened->end.lsn, Lsn(3));
}

TEST(EpochOpeningTest, OwnReplicaPromisesFirst) {
  OpeningWorld world({});
  int asked = 0;
  world.server(2).on_request = [&](const Message& message) {
    if (const auto* ask = std::get_if<recovery::Prepare>(&message)) {
      ++asked;
      EXPECT_EQ(world.replica(1).superline().promised_epoch,
                ask->promise.epoch);
    }
    return true;
  };
  const auto primary = world.Open(0);
  EXPECT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(asked, 1);
}

TEST(EpochOpeningTest, BallotIsAboveAllThatWasPromised) {
  OpeningWorld world({});
  const Epoch before =
      quorum::PackBallot({.counter = 7, .primary = {NodeId(2), 1}});
  ASSERT_TRUE(world.replica(2).AcceptPromise({before, {NodeId(2), 1}}).ok());
  ASSERT_TRUE(world.replica(3).AcceptPromise({before, {NodeId(2), 1}}).ok());
  const auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_GT(primary->opened->epoch, before);
}

// With W > R, too: whoever is needed for a promise has a say in the ballot, so
// that no promise of an opening before costs an attempt.
TEST_P(EpochOpeningWithServerTest, BallotIsAboveWhatAnyoneNeededPromised) {
  for (const int w : {1, 3}) {  // R is 3 or 1: all are needed
    for (const int node : Nodes(3)) {
      SCOPED_TRACE(::testing::Message() << "W " << w << " node " << node);
      OpeningWorld world({.write_quorum = w, .real_server = GetParam()});
      const Epoch before =
          quorum::PackBallot({.counter = 7, .primary = {NodeId(4), 1}});
      ASSERT_TRUE(
          world.replica(node).AcceptPromise({before, {NodeId(4), 1}}).ok());
      const auto primary = world.Open(0);
      ASSERT_TRUE(primary->status().ok()) << primary->status();
      EXPECT_EQ(quorum::BallotCounter(primary->opened->epoch), 8u);
    }
  }
}

// Another primary is promised between server hello and promise.
void PromiseAnother(OpeningWorld& world, int node, bool* done) {
  world.server(node).on_request = [&world, node, done](const Message& message) {
    if (std::holds_alternative<recovery::Prepare>(message) && !*done) {
      *done = true;
      const Epoch other = quorum::PackBallot({9, {NodeId(4), 1}});
      EXPECT_TRUE(
          world.replica(node).AcceptPromise({other, {NodeId(4), 1}}).ok());
    }
    return true;
  };
}

// No log was opened, so it is not Aborted, which a log is that lost its epoch.
TEST(EpochOpeningTest, RefusalsOfTooManyAreALostRace) {
  OpeningWorld world({});
  bool two = false;
  bool three = false;
  PromiseAnother(world, 2, &two);
  PromiseAnother(world, 3, &three);
  const auto primary = world.Open(0);
  EXPECT_EQ(primary->status().code(), absl::StatusCode::kUnavailable)
      << primary->status();
  EXPECT_TRUE(primary->opening->lost_race());
  EXPECT_TRUE(primary->opening->may_try_again());
  ASSERT_TRUE(primary->opening->refused_by().has_value());
  EXPECT_EQ(quorum::BallotCounter(primary->opening->refused_by()->epoch), 9u);
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.above = primary->opening->refused_by()->epoch;
  EXPECT_TRUE(world.Open(0, options)->status().ok());
}

// The faster one keeps the promises that it got.
TEST(EpochOpeningTest, LaterPromiseThanTheOpenerKnewStopsItBeforeItPromises) {
  OpeningWorld world({});
  bool two = false;
  PromiseAnother(world, 2, &two);
  const auto another = world.Open(0);
  ASSERT_TRUE(another->status().ok()) << another->status();
  const Epoch promised = another->opened->epoch;
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.promised_max = Epoch(promised.value - 1);
  const auto late = world.Open(0, options);
  EXPECT_EQ(late->status().code(), absl::StatusCode::kUnavailable)
      << late->status();
  EXPECT_TRUE(late->opening->lost_race());
  EXPECT_THAT(late->status().message(), HasSubstr("Another one was faster"));
  options.promised_max = promised;
  EXPECT_TRUE(world.Open(0, options)->status().ok());
}

TEST(EpochOpeningTest, RefusalOfOneIsReported) {
  OpeningWorld world({});
  bool done = false;
  PromiseAnother(world, 3, &done);
  const auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  ASSERT_EQ(primary->opened->not_installed.size(), 1u);
  EXPECT_THAT(primary->opened->not_installed[0].why, HasSubstr("promised"));
}

// N = W = 3: no one less will do.
TEST(EpochOpeningTest, NothingIsChosenBeforeEnoughReported) {
  OpeningWorld world({.write_quorum = 3});
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.gather_ns = 0;
  const auto primary = world.Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  EXPECT_EQ(primary->opened->backups.size(), 2u);
}

TEST(EpochOpeningTest, FewerThanWInstalledIsNoOpening) {
  OpeningWorld world({.write_quorum = 3});
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Install>(message);
  };
  const auto primary = world.Open(0);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(primary->status().ToString(), HasSubstr("node 3"));
  EXPECT_FALSE(primary->opened.has_value());
}

TEST(EpochOpeningTest, SlowReplicaBeyondWIsLeftBehind) {
  OpeningWorld world({});
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Install>(message);
  };
  const auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  ASSERT_EQ(primary->opened->not_installed.size(), 1u);
  EXPECT_THAT(primary->opened->not_installed[0].why, HasSubstr("too slow"));
}

// Nor is a replica that reads its ring waited for where users wait.
TEST(EpochOpeningTest, NobodyIsWaitedForOnceEnoughHaveInstalled) {
  OpeningWorld world({.ring_capacity = uint64_t{4} << 20});
  auto primary = world.Open(0);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  constexpr uint64_t kBytes = uint64_t{512} << 10;
  for (int i = 0; i < 4; ++i) {
    world.Append(*primary, std::string(kBytes, 'x'), {1, 2, 3});
  }
  primary.reset();
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Install>(message);
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.install_gather_ns = 0;
  const auto next = world.Open(0, options);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->not_installed.size(), 1u);
  EXPECT_LT(next->opened->installed_ns - next->opened->chosen_ns,
            recovery::ReadingNanos(4 * kBytes));
}

TEST(EpochOpeningTest, TooFewReplicasAreUnavailable) {
  OpeningWorld world({});
  world.Crash(2);
  world.Crash(3);
  const auto primary = world.Open(0);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(primary->status().ToString(), HasSubstr("node 2"));
  EXPECT_THAT(primary->status().ToString(), HasSubstr("node 3"));
}

TEST_P(EpochOpeningWithServerTest, LateReplicaIsWaitedFor) {
  OpeningWorld world({.real_server = GetParam()});
  world.Crash(2);
  world.Crash(3);
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.deadline = Deadline::AtNanos(100'000'000);
  const auto primary = world.Begin(0, options);
  while (world.network().clock().NowNanos() < 20'000'000) {
    ASSERT_TRUE(world.Step({primary.get()}));
  }
  world.Restart(3);
  world.Drive({primary.get()});
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  ASSERT_EQ(primary->opened->backups.size(), 1u);
  EXPECT_EQ(primary->opened->backups[0].node, NodeId(3));
}

TEST(EpochOpeningTest, DeadlineEndsTheWaiting) {
  OpeningWorld world({});
  world.Crash(2);
  world.Crash(3);
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.deadline = Deadline::AtNanos(30'000'000);
  const auto primary = world.Open(0, options);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_GE(world.network().clock().NowNanos(), 30'000'000);
}

// Two promise, which would be enough; but only one of them can tell what nobody
// has.
TEST(EpochOpeningTest, DeadlineTellsWhatIsUndecidedOfARepairingReplica) {
  OpeningWorld world({});
  const auto before = world.Open(0);
  ASSERT_TRUE(before->status().ok()) << before->status();
  world.Append(*before, "a", {1, 2, 3});
  world.Crash(2);
  const Epoch next = quorum::PackBallot({9, {NodeId(4), 1}});
  ASSERT_TRUE(world.replica(3).AcceptPromise({next, {NodeId(4), 1}}).ok());
  ASSERT_TRUE(world.replica(3).BeginRepair(next).ok());
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.above = next;
  options.gather_ns = 0;
  options.deadline =
      Deadline::AtNanos(world.network().clock().NowNanos() + 30'000'000);
  const auto primary = world.Open(0, options);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_THAT(primary->status().ToString(),
              HasSubstr("replicas had reported and decided: "));
}

// An opener that waits keeps its replica from others that could open the log.
TEST(EpochOpeningTest, ReportsAreWaitedForNoLongerThanTheyMayTake) {
  OpeningWorld world({});
  world.Crash(2);
  world.Crash(3);
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.deadline = Deadline::AtNanos(100'000'000);
  options.report_ns = 20'000'000;
  const auto primary = world.Open(0, options);
  EXPECT_TRUE(absl::IsUnavailable(primary->status())) << primary->status();
  EXPECT_GE(world.network().clock().NowNanos(), 20'000'000);
  EXPECT_LT(world.network().clock().NowNanos(), 30'000'000);
}

// Two have reported, and the third never does.
TEST(EpochOpeningTest, MomentsTellHowLongOneMoreReportWasWaitedFor) {
  OpeningWorld world({});
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Prepare>(message);
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.step_timeout_ns = 1'000'000'000;
  const auto primary = world.Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  const recovery::EpochOpened& opened = *primary->opened;
  EXPECT_GT(opened.promised_ns, 0);
  EXPECT_GE(opened.chosen_ns, opened.promised_ns + options.gather_ns);
  EXPECT_GT(opened.installed_ns, opened.chosen_ns);
}

// The third one is not waited for as long as it may take.
TEST(EpochOpeningTest, MoreReportsAreWaitedForAsLongAsOthersTook) {
  OpeningWorld world({});
  world.server(3).on_request = [](const Message& message) {
    return !std::holds_alternative<recovery::Prepare>(message);
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.step_timeout_ns = 1'000'000'000;
  options.gather_ns = 500'000'000;
  options.gather_factor = 3;
  const int64_t began_ns = world.network().clock().NowNanos();
  const auto primary = world.Open(0, options);
  ASSERT_TRUE(primary->status().ok()) << primary->status();
  const recovery::EpochOpened& opened = *primary->opened;
  const int64_t took_ns = opened.promised_ns - began_ns;
  EXPECT_GE(opened.chosen_ns - opened.promised_ns, 3 * took_ns);
  EXPECT_LT(opened.chosen_ns - opened.promised_ns, options.gather_ns / 2);
}

// Appends a record to the primary's own ring, replicates it, and counts the
// replicas that have it by their acks, its own included.
uint32_t AcksOfOneRecord(OpeningWorld& world, Primary& primary,
                         const std::function<void()>& step) {
  const bool has_replica = primary.host < 3;
  const Lsn lsn = primary.opened->start.end.lsn;
  world.Append(primary, "one", {has_replica ? primary.host + 1 : 0});
  const LogPosition& end = primary.opened->start.end;
  for (OpenedBackup& backup : primary.opened->backups) {
    backup.session->Advance({end.lsn - 1, end.offset}).IgnoreError();
  }
  for (int i = 0; i < 500; ++i) step();
  uint32_t acked = has_replica ? 1 : 0;
  for (const OpenedBackup& backup : primary.opened->backups) {
    acked += backup.session->acked_lsn() >= lsn ? 1 : 0;
  }
  return acked;
}

// Returns the rings of the members that promised that epoch, but for one node.
std::vector<std::string> RingsThatPromised(OpeningWorld& world, Epoch epoch,
                                           int but) {
  std::vector<std::string> rings;
  for (const int node : Nodes(3)) {
    if (node == but) continue;
    if (world.replica(node).superline().promised_epoch != epoch) continue;
    const Ring ring = world.replica(node).ring();
    rings.emplace_back(AsText({ring.data(), ring.capacity()}));
  }
  return rings;
}

// Two openers at once: never two that share an epoch, and whoever was promised
// less has no session that works.
TEST_P(EpochOpeningWithServerTest, TwoOpenersNeverShareAnEpoch) {
  int both = 0;
  int none = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    OpeningWorld world({.seed = seed, .real_server = GetParam()});
    const auto a = world.Begin(0, world.OpeningOptions(0));
    // From at once to when the other one is through.
    for (uint64_t i = 0; i < seed % 100; ++i) world.Step({a.get()});
    const auto b = world.Begin(seed % 2 == 0 ? 1 : 3,
                               world.OpeningOptions(seed % 2 == 0 ? 1 : 3));
    world.Drive({a.get(), b.get()});
    none += !a->opened && !b->opened ? 1 : 0;
    if (!a->opened || !b->opened) continue;
    ++both;
    EXPECT_NE(a->opened->epoch, b->opened->epoch);
    const bool a_lost = a->opened->epoch < b->opened->epoch;
    const auto step = [&] { world.Step({a.get(), b.get()}); };
    const uint32_t w = world.sizes().write_quorum;
    Primary& loser = a_lost ? *a : *b;
    const Epoch higher = (a_lost ? *b : *a).opened->epoch;
    const auto before = RingsThatPromised(world, higher, loser.host + 1);
    EXPECT_LT(AcksOfOneRecord(world, loser, step), w);
    // Nor has a byte of it landed where the higher epoch is promised (P-R2):
    // that it is not acknowledged would not be enough.
    EXPECT_EQ(RingsThatPromised(world, higher, loser.host + 1), before);
    EXPECT_GE(before.size(), 1u);
    // The same record of the other one is durable.
    EXPECT_GE(AcksOfOneRecord(world, a_lost ? *b : *a, step), w);
  }
  // Both outcomes were met.
  EXPECT_GT(both, 0);
  EXPECT_LT(none, 300);
}

// A member or the primary goes at every event; then another opening finds all
// that was durable, and all replicas have the same log (P-C4).
TEST_P(EpochOpeningWithServerTest, NextOpeningSucceedsWhereverOneIsCutOff) {
  for (const int victim : {0, 2, 3}) {  // 0: only the primary's process
    for (int k = 1;; ++k) {
      SCOPED_TRACE(::testing::Message()
                   << "victim " << victim << " event " << k);
      OpeningWorld world({.seed = 5, .real_server = GetParam()});
      auto primary = world.Open(0);
      ASSERT_TRUE(primary->status().ok()) << primary->status();
      world.Append(*primary, "a", {1, 2, 3});
      world.Append(*primary, "b", {2, 3});
      world.Append(*primary, "c", {3});
      primary = world.Begin(0, world.OpeningOptions(0));
      bool over = false;
      for (int i = 0; i < k && !over; ++i) over = !world.Step({primary.get()});
      if (victim != 0) {
        world.Crash(victim);
        world.Drive({primary.get()});
      }
      Payloads shown;
      if (primary->opened) shown = world.Payloads(1);
      primary.reset();
      if (victim != 0) world.Restart(victim);
      world.Crash(1);
      world.Restart(1);
      const auto next = world.Open(0);
      ASSERT_TRUE(next->status().ok()) << next->status();
      const Payloads log = world.Payloads(1);
      ASSERT_GE(log.size(), 2u) << world.Describe();
      EXPECT_EQ(log[0], "a");
      EXPECT_EQ(log[1], "b");
      // One whose connection is slow may be left behind.
      ASSERT_GE(next->opened->backups.size(), 1u);
      for (const OpenedBackup& backup : next->opened->backups) {
        EXPECT_EQ(world.Payloads(static_cast<int>(backup.node.value)), log);
      }
      ASSERT_LE(shown.size(), log.size());
      EXPECT_TRUE(std::equal(shown.begin(), shown.end(), log.begin()));
      if (over) break;
    }
  }
}

TEST(EpochOpeningTest, OpeningThatIsAbandonedHindersNoOther) {
  OpeningWorld world({});
  auto primary = world.Begin(0, world.OpeningOptions(0));
  for (int i = 0; i < 40; ++i) world.Step({primary.get()});
  primary.reset();
  const auto next = world.Open(0);
  EXPECT_TRUE(next->status().ok()) << next->status();
}

TEST(EpochOpeningTest, WhatIsNotItsOwnIsNotTaken) {
  OpeningWorld world({});
  const auto primary = world.Begin(0, world.OpeningOptions(0));
  fabric::Completion completion;
  completion.connection = fabric::ConnectionId(999);
  EXPECT_FALSE(primary->opening->OnCompletion(completion));
  fabric::ConnectionEvent event;
  event.kind = fabric::ConnectionEvent::Kind::kDisconnected;
  event.connection = fabric::ConnectionId(999);
  EXPECT_FALSE(primary->opening->OnConnectionEvent(event));
}

TEST(EpochOpeningTest, OptionsThatCannotBeAreRefused) {
  OpeningWorld world({});
  Random random(1);
  auto ballots = *quorum::StaticMembership::Make({NodeId(1), 1});
  const auto start = [&](const EpochOpeningOptions& options) {
    return recovery::EpochOpening::Start(
               world.network().fabric(0), world.network().clock(), random,
               ballots, options, recovery::AsOpenersReplica(world.replica(1)))
        .status();
  };
  EpochOpeningOptions options = world.OpeningOptions(0);
  options.peers.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(start(options)));
  options = world.OpeningOptions(0);
  options.credits = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(start(options)));
  options = world.OpeningOptions(0);
  options.log_id = {5, 6};
  EXPECT_TRUE(absl::IsFailedPrecondition(start(options)));
  options = world.OpeningOptions(0);
  options.configuration_id = 0;
  EXPECT_TRUE(absl::IsFailedPrecondition(start(options)));
}

}  // namespace
}  // namespace alpheus::testing
