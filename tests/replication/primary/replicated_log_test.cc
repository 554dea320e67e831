// SPDX-License-Identifier: Apache-2.0
// The log and its backups as a whole: what is durable, when bytes are given
// out, what a lost quorum does, what it costs.
#include "tests/replication/primary/replicated_log.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/core/ring/region_state.h"

namespace alpheus::testing {

using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::Operation;
using model::ModelPersistence;
using replication::Replicator;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr FlushOrder kOrders[] = {
    FlushOrder::kRemoteFirst, FlushOrder::kLocalFirst, FlushOrder::kParallel};

// RSK4, of a backup that is slow, and of one that is silent.
TEST(ReplicatedLogTest, AllInSyncAreWaitedForUntilTheyAreNoMore) {
  ReplicatedLog world(
      {.backups = 2,
       .replicator = {.write_quorum = 2, .ack_timeout_ns = 1000}});
  std::vector<Lsn> told;
  const auto tell_of = [&](Lsn lsn) {
    const absl::Status asked = world.log().OnPersisted(
        lsn, PersistedBy::kAllInSync, [&told, lsn](const absl::Status& status) {
          EXPECT_TRUE(status.ok()) << status;
          told.push_back(lsn);
        });
    EXPECT_TRUE(asked.ok()) << asked;
  };
  world.backup(1).answers = false;
  ASSERT_TRUE(world.Append(100).ok());
  tell_of(Lsn(1));
  EXPECT_THAT(told, IsEmpty());
  world.backup(1).Serve();
  world.log().Poll();
  EXPECT_THAT(told, ElementsAre(Lsn(1)));
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(1)), 3);

  ASSERT_TRUE(world.Append(100).ok());
  tell_of(Lsn(2));
  world.backup(0).Serve();
  world.log().Poll();
  EXPECT_EQ(world.replication().in_sync(), 3u);
  EXPECT_THAT(told, ElementsAre(Lsn(1)));
  world.PassBackupTime(1008);
  EXPECT_EQ(world.replication().in_sync(), 2u);
  EXPECT_THAT(told, ElementsAre(Lsn(1), Lsn(2)));
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(2)), 2);
}

// One batch is one write with immediate per backup, one ack, and one fence on
// each replica, in every order.
TEST(ReplicatedLogTest, AppendCostsOneOfEachPerBackup) {
  for (const FlushOrder order : kOrders) {
    for (const uint32_t backups : {1u, 2u}) {
      SCOPED_TRACE(absl::StrCat("order ", static_cast<int>(order), ", ",
                                backups, " backups"));
      ReplicatedLog world({.backups = static_cast<int>(backups),
                           .replicator = {.write_quorum = backups + 1},
                           .order = order});
      ASSERT_TRUE(world.Append(100).ok());
      const uint64_t fences = world.pmem().fence_count();
      const uint64_t backup_fences = world.backup(0).pmem.fence_count();
      uint64_t round_trips = 0;
      world.SetElsewhere([&] {
        ++round_trips;
        for (int i = 0; i < world.backups(); ++i) world.backup(i).Serve();
      });
      ASSERT_TRUE(world.Append(100).ok());
      EXPECT_EQ(round_trips, 1u);
      EXPECT_EQ(world.pmem().fence_count(), fences + 1);
      EXPECT_EQ(world.fabric().executed(Operation::kWriteImmediate),
                2u * backups);
      EXPECT_EQ(world.fabric().executed(Operation::kWrite), 0u);
      EXPECT_EQ(world.fabric().executed(Operation::kSend), 0u);
      EXPECT_EQ(world.backup(0).pmem.fence_count(), backup_fences + 1);
      EXPECT_EQ(world.backup(0).fabric.executed(Operation::kSend), 2u);
      EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(2)), backups + 1);
    }
  }
}

// P-A3.8: one message to each backup, one ack of each, and nothing is
// persisted.
TEST(ReplicatedLogTest, ConfirmationCostsOneMessagePerBackup) {
  ReplicatedLog world(
      {.backups = 2, .replicator = {.write_quorum = 2, .replica_count = 3}});
  ASSERT_TRUE(world.Append(100).ok());
  while (!world.replication().is_idle()) {
    world.fabric().WaitForActivity(Deadline());
    world.log().Poll();
  }
  const uint64_t fences = world.pmem().fence_count();
  const uint64_t backup_fences = world.backup(0).pmem.fence_count();
  const uint64_t writes = world.fabric().executed(Operation::kWriteImmediate);
  const uint64_t sends = world.fabric().executed(Operation::kSend);
  const uint64_t acks = world.backup(0).fabric.executed(Operation::kSend);
  uint64_t round_trips = 0;
  world.SetElsewhere([&] {
    ++round_trips;
    for (int i = 0; i < world.backups(); ++i) world.backup(i).Serve();
  });
  ASSERT_TRUE(world.log().ConfirmEpoch(Deadline()).ok());
  EXPECT_EQ(round_trips, 1u);
  EXPECT_EQ(world.fabric().executed(Operation::kSend), sends + 2);
  EXPECT_EQ(world.fabric().executed(Operation::kWriteImmediate), writes);
  EXPECT_EQ(world.backup(0).fabric.executed(Operation::kSend), acks + 1);
  EXPECT_EQ(world.pmem().fence_count(), fences);
  EXPECT_EQ(world.backup(0).pmem.fence_count(), backup_fences);
}

// Each opening needs all replicas, so this process's own says enough.
TEST(ReplicatedLogTest, ConfirmationCostsNothingWhereAllMustPromise) {
  ReplicatedLog world(
      {.backups = 1, .replicator = {.write_quorum = 2, .replica_count = 2}});
  ASSERT_TRUE(world.Append(100).ok());
  world.SetAnswers(false);
  EXPECT_TRUE(world.log().ConfirmEpoch(Deadline()).ok());
  EXPECT_EQ(world.fabric().executed(Operation::kSend), 0u);
  // A record on its way may be durable already.
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(world.Append(100, world.Soon()).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.log().ConfirmEpoch(world.Soon())));
  world.SetAnswers(true);
  EXPECT_TRUE(world.log().ConfirmEpoch(Deadline()).ok());
  EXPECT_EQ(world.log().durable_lsn(), Lsn(2));
}

// The primary's process was stopped, and a backup has ended its session since.
TEST(ReplicatedLogTest, LogWithoutItsBackupsIsNotConfirmed) {
  ReplicatedLog world(
      {.backups = 2, .replicator = {.write_quorum = 2, .replica_count = 3}});
  ASSERT_TRUE(world.Append(100).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(world.replication().Disconnected(world.backup(i).connection));
  }
  EXPECT_TRUE(absl::IsAborted(world.log().ConfirmEpoch(Deadline())));
}

// Several records need only one batch, too.
TEST(ReplicatedLogTest, RecordsThatWaitGoTogether) {
  ReplicatedLog world({});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world.Fill(100).ok());
  ASSERT_TRUE(world.log().Force(Lsn(5), 1, Deadline()).ok());
  EXPECT_EQ(world.fabric().executed(Operation::kWriteImmediate), 1u);
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(5)), 2);
}

// W = 2 of 2, and nobody answers: the caller's deadline is no poison, and no
// header says that what is persisted here alone is durable.
TEST(ReplicatedLogTest, DurableIsWhatWReplicasHave) {
  for (const FlushOrder order : kOrders) {
    ReplicatedLog world({.order = order});
    world.SetAnswers(false);
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(world.Append(100, world.Soon()).status()));
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(world.Append(100, world.Soon()).status()));
    EXPECT_EQ(world.log().durable_lsn(), Lsn(0));
    EXPECT_EQ(world.log().Exposed(), 2u);
    EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(2)), 1);  // its own
    EXPECT_EQ(world.DurableFieldOf(Lsn(2)), Lsn(0));
    Lsn told(0);
    ASSERT_TRUE(world.log()
                    .OnDurable(Lsn(1),
                               [&told](const absl::Status& status) {
                                 if (status.ok()) told = Lsn(1);
                               })
                    .ok());
    EXPECT_EQ(told, Lsn(0));
    EXPECT_TRUE(absl::IsDeadlineExceeded(
        world.log().WaitDurable(Lsn(1), world.Soon())));
    EXPECT_TRUE(absl::IsFailedPrecondition(world.log().Cleanup(Lsn(1))));
    world.SetAnswers(true);
    EXPECT_TRUE(world.log().WaitDurable(Lsn(2), Deadline()).ok());
    EXPECT_EQ(told, Lsn(1));
    EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(2)), 2);
    EXPECT_EQ(world.Append(100).value(), Lsn(3));
    EXPECT_EQ(world.DurableFieldOf(Lsn(3)), Lsn(2));
  }
}

TEST(ReplicatedLogTest, OneBackupOfTwoIsEnoughForTwo) {
  ReplicatedLog world({.backups = 2});
  world.backup(0).answers = false;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(world.Append(100).ok());
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(20)), 2);
  // The other has as many batches as it has receives; the rest is one.
  world.backup(0).answers = true;
  ASSERT_TRUE(world.Append(100).ok());
  while (!world.replication().is_idle()) {
    world.fabric().WaitForActivity(Deadline());
    world.log().Poll();
  }
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(21)), 3);
}

TEST(ReplicatedLogTest, RemoteOnlyCountsItsBackups) {
  ReplicatedLog world(
      {.replicator = {.write_quorum = 1, .has_local_replica = false}});
  world.SetAnswers(false);
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(world.Append(100, world.Soon()).status()));
  EXPECT_EQ(world.log().durable_lsn(), Lsn(0));
  world.SetAnswers(true);
  ASSERT_TRUE(world.Append(100).ok());
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(2)), 1);
  EXPECT_TRUE(world.log().Close().ok());
  EXPECT_EQ(world.backup(0).superline.head_lsn, Lsn(1));
}

// P-F7, P-H20: a caller that waits hears of it, and so does every later call.
TEST(ReplicatedLogTest, LostQuorumIsToldToWhoWaitsAndToAllLater) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Append(100).ok());
  world.SetElsewhere([&] {
    world.fabric().AddEvent({ConnectionEvent::Kind::kDisconnected,
                             world.backup(0).connection, "", ""});
  });
  absl::Status told;
  ASSERT_TRUE(world.Fill(100).ok());
  ASSERT_TRUE(world.log()
                  .OnDurable(Lsn(2), [&](const absl::Status& s) { told = s; })
                  .ok());
  const absl::Status failed = world.log().Force(Lsn(2), 1, world.Soon());
  ASSERT_TRUE(absl::IsAborted(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("unknown outcome"));
  EXPECT_EQ(told, failed);
  EXPECT_EQ(world.Append(100).status(), failed);
  EXPECT_EQ(world.log().Reserve(100, Deadline()).status(), failed);
  EXPECT_EQ(world.log().Force(Lsn(1), 1, Deadline()), failed);
  EXPECT_EQ(world.log().WaitDurable(Lsn(2), Deadline()), failed);
  EXPECT_EQ(world.log().CleanupAll(), failed);
  EXPECT_EQ(world.log().Close(), failed);
  EXPECT_EQ(world.log().durable_lsn(), Lsn(1));
}

// An idle log hears of a broken connection from whoever polls it.
TEST(ReplicatedLogTest, IdleLogHearsOfABrokenConnection) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Append(100).ok());
  // The durable LSN is announced to the backup, which answers.
  while (world.log().Poll() != Polled::kIdle) {
    world.fabric().WaitForActivity(Deadline());
  }
  world.SetElsewhere([&] {
    world.fabric().AddEvent({ConnectionEvent::Kind::kDisconnected,
                             world.backup(0).connection, "", ""});
  });
  const uint32_t seen = world.log().progress().Announce();
  EXPECT_EQ(world.log().Poll(), Polled::kIdle);
  world.log().WaitForWork(seen, Deadline());
  world.log().progress().Withdraw();
  EXPECT_EQ(world.log().Poll(), Polled::kIdle);
  EXPECT_TRUE(absl::IsAborted(world.Append(100).status()));
}

// The notice that says so is the only message.
TEST(ReplicatedLogTest, RestingLogAnnouncesItsDurableRecords) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Append(100).ok());
  EXPECT_EQ(world.fabric().executed(Operation::kSend), 0u);
  while (world.log().Poll() != Polled::kIdle) {
    world.fabric().WaitForActivity(Deadline());
  }
  EXPECT_EQ(world.fabric().executed(Operation::kSend), 1u);
}

// A backup that is not needed for W still has a timer.
TEST(ReplicatedLogTest, LogIsNotIdleBeforeItsBackupsAre) {
  ReplicatedLog world(
      {.replicator = {.write_quorum = 1, .ack_timeout_ns = 1000}});
  ASSERT_TRUE(world.Append(100).ok());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(world.log().Poll(), Polled::kMoved);
  EXPECT_EQ(world.replication().status(), absl::OkStatus());
  world.PassBackupTime(1008);
  EXPECT_EQ(world.log().Poll(), Polled::kIdle);  // it was given up
}

// IK1 and IK2 of idle_keeper.h.
TEST(ReplicatedLogTest, IdleTailIsForcedOnAllReplicas) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Fill(100).ok());
  for (int i = 0; i < 5; ++i) {
    world.log().Poll();
    world.fabric().WaitForActivity(Deadline());
  }
  EXPECT_EQ(world.log().Poll(), Polled::kIdle);
  EXPECT_EQ(world.log().durable_lsn(), Lsn(1));
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(1)), 2);
}

// P-F6: exposed is what is not durable on W, whatever is persisted here.
TEST(ReplicatedLogTest, CapIsOnWhatWReplicasDoNotHave) {
  ReplicatedLog world({.exposure_records_max = 4});
  world.SetAnswers(false);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(world.Fill(16).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.Fill(16, world.Soon()).status()));
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(4)), 1);
  EXPECT_EQ(world.log().Exposed(), 4u);
  world.SetAnswers(true);
  EXPECT_TRUE(world.Fill(16).ok());
}

// A ring of 16 lines, full; its records are cleaned, and the head is here. The
// backup has the records, and not yet the head.
class FullRing {
 public:
  explicit FullRing(const Replicator::Options& options)
      : world({.replicator = options, .ring_capacity = 1024}) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(world.Append(200).ok());
    while (!world.replication().is_idle()) {
      world.fabric().WaitForActivity(Deadline());
      world.log().Poll();
    }
    world.SetAnswers(false);
  }

  ReplicatedLog world;
};

TEST(ReplicatedLogTest, BytesAreAssignedBehindEveryHead) {
  FullRing full({.write_quorum = 1});
  ReplicatedLog& world = full.world;
  EXPECT_TRUE(absl::IsResourceExhausted(world.Fill(200).status()));
  ASSERT_TRUE(world.log().CleanupThrough(Lsn(4)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.Fill(200, world.Soon()).status()));
  EXPECT_EQ(world.backup(0).superline.head_lsn, Lsn(1));
  world.SetAnswers(true);
  EXPECT_TRUE(world.Fill(200).ok());  // waits without a deadline of its own
  EXPECT_EQ(world.backup(0).superline.head_lsn, Lsn(5));
}

TEST(ReplicatedLogTest, LostBackupHoldsNoBytes) {
  FullRing full({.write_quorum = 1, .ack_timeout_ns = 1000});
  ReplicatedLog& world = full.world;
  ASSERT_TRUE(world.log().CleanupThrough(Lsn(4)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(world.Fill(200, world.Soon()).status()));
  world.PassBackupTime(1008);
  EXPECT_TRUE(world.Fill(200, world.Soon()).ok());
}

// Only the application could help: as in a local log.
TEST(ReplicatedLogTest, FullRingOfUncleanedRecordsIsExhausted) {
  FullRing full({.write_quorum = 2});
  EXPECT_TRUE(absl::IsResourceExhausted(full.world.Fill(200).status()));
}

// A backup that answers every seventh time, and a ring that is always full.
TEST(ReplicatedLogTest, SlowBackupSlowsAndNeverStops) {
  for (const uint32_t quorum : {1u, 2u}) {
    ReplicatedLog world(
        {.replicator = {.write_quorum = quorum}, .ring_capacity = 1024});
    int waits = 0;
    world.SetElsewhere([&] {
      if (++waits % 7 == 0) world.backup(0).Serve();
    });
    for (uint64_t lsn = 1; lsn <= 50; ++lsn) {
      ASSERT_EQ(world.Append(200).value(), Lsn(lsn));
      ASSERT_TRUE(world.log().CleanupThrough(Lsn(lsn)).ok());
    }
    EXPECT_GT(world.backup(0).superline.head_offset.value, 10u * 1024);
  }
}

// P-L11: the highest head that R replicas answer is the log's, so W must have
// it.
TEST(ReplicatedLogTest, CleanedLogIsCleanedOnWReplicas) {
  ReplicatedLog world({});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.Append(100).ok());
  ASSERT_TRUE(world.log().CleanupAll().ok());
  EXPECT_EQ(world.backup(0).superline.head_lsn, Lsn(4));
  ASSERT_TRUE(world.log().CleanupAll().ok());  // nothing is left to do
}

TEST(ReplicatedLogTest, CloseLeavesWReplicasAlike) {
  ReplicatedLog world({});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(world.Append(100).ok());
  ASSERT_TRUE(world.Fill(100).ok());
  ASSERT_TRUE(world.log().CleanupThrough(Lsn(2)).ok());
  ASSERT_TRUE(world.log().Close().ok());
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(4)), 2);
  EXPECT_EQ(world.backup(0).superline.head_lsn, Lsn(3));
  std::vector<std::byte> left = world.pmem().CutKeepingNone();
  const auto state = ReadRegionState(left, "closed");
  ASSERT_TRUE(state.ok());
  EXPECT_TRUE(state->closed_cleanly);
  EXPECT_EQ(state->ProvenLsn(), Lsn(4));
  EXPECT_EQ(state->superline.head_lsn, Lsn(3));
}

// A fence of the own replica fails: that ends the log, whoever else has it.
// A backup that stands still says nothing, not even that; Close has no deadline
// and no other thread polls beside it (P-A3.3, P-H20).
TEST(ReplicatedLogTest, CloseNoticesThatABackupIsSilent) {
  ReplicatedLog world(
      {.replicator = {.write_quorum = 2, .ack_timeout_ns = 1000}});
  ASSERT_TRUE(world.Append(100).ok());
  ASSERT_TRUE(world.log().CleanupThrough(Lsn(1)).ok());
  int waits = 0;
  world.SetElsewhere([&] {
    const Deadline until = world.fabric().waits_until();
    EXPECT_TRUE(until.is_set()) << "it sleeps for ever";
    // A test that fails ends, too.
    world.backup_clock().now_nanos =
        until.is_set() ? until.at_nanos()
                       : world.backup_clock().now_nanos + 1000;
    ++waits;
  });
  const absl::Status closed = world.log().Close();
  EXPECT_FALSE(closed.ok());
  EXPECT_GE(waits, 4);
}

TEST(ReplicatedLogTest, FailedFenceEndsTheLogInEveryOrder) {
  for (const FlushOrder order : kOrders) {
    ReplicatedLog world({.replicator = {.write_quorum = 1}, .order = order});
    ASSERT_TRUE(world.Append(100).ok());
    world.pmem().FailFence(1);
    const absl::Status failed = world.Append(100, world.Soon()).status();
    EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
    EXPECT_EQ(world.log().durable_lsn(), Lsn(1));
    EXPECT_EQ(world.Append(100).status(), failed);
    // Other events that come in are still taken.
    world.fabric().AddEvent({ConnectionEvent::Kind::kDisconnected,
                             world.backup(0).connection, "", ""});
    world.log().Poll();
    EXPECT_EQ(world.log().Poll(), Polled::kIdle);
    EXPECT_TRUE(world.fabric().is_closed(world.backup(0).connection));
  }
}

TEST(ReplicatedLogTest, WaitsBehindItsOwnReservationAreRefused) {
  ReplicatedLog world({});
  auto open = world.log().Reserve(16, Deadline());
  ASSERT_TRUE(open.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(world.Append(16).status()));
  world.log().Abort(*open);
  EXPECT_TRUE(world.Append(16).ok());
  EXPECT_TRUE(world.log().Force(Lsn(1), 1, Deadline()).ok());
}

// P-INV-22 on images, at every fence of every replica and after every wait:
// what the log calls durable outlives a power cut of all hosts at once on W
// replicas; in every order, over laps of the ring, with cleaning.
TEST(ReplicatedLogTest, DurableRecordsOutliveACutOfAllAtAnyPoint) {
  for (const FlushOrder order : kOrders) {
    for (const uint32_t quorum : {1u, 2u, 3u}) {
      SCOPED_TRACE(
          absl::StrCat("order ", static_cast<int>(order), ", W ", quorum));
      ReplicatedLog world({.backups = 2,
                           .replicator = {.write_quorum = quorum},
                           .order = order,
                           .ring_capacity = 1024});
      int cuts = 0;
      const auto cut = [&] {
        ++cuts;
        const Lsn durable = world.log().durable_lsn();
        ASSERT_GE(world.HoldersAfterAPowerCut(durable),
                  static_cast<int>(quorum))
            << "LSN " << durable.value;
      };
      const ModelPersistence::Hook at_fence =
          [&](const ModelPersistence::Event& event) {
            if (event.primitive == ModelPersistence::Primitive::kFence) cut();
          };
      world.pmem().SetHook(at_fence);
      for (int i = 0; i < 2; ++i) world.backup(i).pmem.SetHook(at_fence);
      Random random(quorum);
      world.SetElsewhere([&] {
        const int first = static_cast<int>(random.Next() % 2);
        world.backup(first).Serve();
        cut();
        if (random.Next() % 2 == 0) world.backup(1 - first).Serve();
      });
      for (uint64_t lsn = 1; lsn <= 30; ++lsn) {
        ASSERT_EQ(world.Append(random.Next() % 200).value(), Lsn(lsn));
        cut();
        if (lsn > 2) {
          ASSERT_TRUE(world.log().CleanupThrough(Lsn(lsn - 2)).ok());
        }
      }
      world.pmem().SetHook({});
      EXPECT_GT(cuts, 100);
    }
  }
}

// The fence then runs while the bytes travel (Arcadia §5.3).
TEST(ReplicatedLogTest, BatchIsSentBeforeTheFenceButInLocalFirst) {
  for (const FlushOrder order : kOrders) {
    SCOPED_TRACE(absl::StrCat("order ", static_cast<int>(order)));
    ReplicatedLog world({.order = order});
    std::optional<uint64_t> sent_at_fence;
    world.pmem().SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      sent_at_fence = world.fabric().executed(Operation::kWriteImmediate);
      EXPECT_EQ(world.fabric().posted(), 0u);
    });
    ASSERT_TRUE(world.Append(100).ok());
    world.pmem().SetHook({});
    EXPECT_EQ(sent_at_fence, order == FlushOrder::kLocalFirst ? 0u : 1u);
  }
}

// RF4 (replicated_forcer.h): what was posted and persisted before would be
// acknowledged after the failure of a fence, or of a superline update.
TEST(ReplicatedLogTest, NothingBecomesDurableBehindAFailure) {
  for (const FlushOrder order : kOrders) {
    ReplicatedLog world({.order = order});
    world.SetAnswers(false);
    EXPECT_TRUE(
        absl::IsDeadlineExceeded(world.Append(100, world.Soon()).status()));
    absl::Status told;
    ASSERT_TRUE(world.log()
                    .OnDurable(Lsn(1), [&](const absl::Status& s) { told = s; })
                    .ok());
    world.pmem().FailFence(1);
    const absl::Status failed = world.Append(100, world.Soon()).status();
    EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
    EXPECT_EQ(told, failed);
    world.SetAnswers(true);
    for (int i = 0; i < 3; ++i) {
      world.fabric().WaitForActivity(Deadline());
      world.log().Poll();
    }
    EXPECT_TRUE(absl::IsAborted(world.replication().status()));
    EXPECT_EQ(world.replication().in_sync(), 1U) << "the own one";
    EXPECT_EQ(world.log().durable_lsn(), Lsn(0));
    EXPECT_EQ(world.log().Force(Lsn(1), 1, Deadline()), failed);
  }
}

// It runs in a step of a call that waits for acks itself, and nobody else does.
TEST(ReplicatedLogTest, CallbackMayForceWithinAWait) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Fill(100).ok());
  absl::Status appended = absl::UnknownError("not called");
  absl::Status waited;
  ASSERT_TRUE(world.log()
                  .OnDurable(Lsn(1),
                             [&](const absl::Status&) {
                               appended =
                                   world.Append(100, world.Soon()).status();
                               EXPECT_TRUE(world.Fill(100).ok());
                               waited =
                                   world.log().Force(Lsn(3), 1, world.Soon());
                             })
                  .ok());
  EXPECT_TRUE(world.log().Close().ok());
  EXPECT_TRUE(appended.ok()) << appended;
  EXPECT_TRUE(waited.ok()) << waited;
  EXPECT_EQ(world.HoldersAfterAPowerCut(Lsn(3)), 2);
}

// A callback may want the step: it is told with no lock held.
TEST(ReplicatedLogTest, FailedFenceIsToldOutsideTheStep) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Fill(100).ok());
  const ConnectionId connection = world.backup(0).connection;
  absl::Status told;
  ASSERT_TRUE(world.log()
                  .OnDurable(Lsn(1),
                             [&](const absl::Status& status) {
                               told = status;
                               world.fabric().AddEvent(
                                   {ConnectionEvent::Kind::kDisconnected,
                                    connection, "", ""});
                               world.log().Poll();
                               EXPECT_TRUE(
                                   world.fabric().is_closed(connection));
                             })
                  .ok());
  world.pmem().FailFence(1);
  EXPECT_TRUE(absl::IsUnavailable(world.log().Force(Lsn(1), 1, world.Soon())));
  EXPECT_TRUE(absl::IsUnavailable(told)) << told;
}

const std::atomic<uint32_t> kNoStop{0};

// Nobody forces and nobody waits; whoever polls waits for the acks between two
// polls, if there is anybody to tell.
TEST(ReplicatedLogTest, CallbackIsToldWhenTheAckArrives) {
  ReplicatedLog world({});
  RingLog<ModelPersistence>& log = world.log();
  int waits = 0;
  world.SetElsewhere([&] {
    ++waits;
    world.backup(0).Serve();
  });
  ASSERT_TRUE(world.Fill(100).ok());
  ASSERT_TRUE(world.Fill(100).ok());
  log.Poll();
  bool told = false;
  const auto tell = [&told](const absl::Status& status) { told = status.ok(); };
  ASSERT_TRUE(log.OnDurable(Lsn(2), tell).ok());
  // It is not on its way yet: the thread rests.
  EXPECT_TRUE(log.WaitForAcks(world.Soon(), kNoStop));
  log.Poll();
  EXPECT_FALSE(told);
  EXPECT_FALSE(log.WaitForAcks(Deadline::AtNanos(0), kNoStop));
  EXPECT_EQ(waits, 0);
  EXPECT_TRUE(log.WaitForAcks(world.Soon(), kNoStop));
  EXPECT_TRUE(told);
  EXPECT_TRUE(log.WaitForAcks(world.Soon(), kNoStop));
  EXPECT_EQ(waits, 1);
  // Nobody is to be told of this one.
  ASSERT_TRUE(world.Fill(100).ok());
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(log.Force(Lsn(3), 1, Deadline::AtNanos(0))));
  EXPECT_TRUE(log.WaitForAcks(world.Soon(), kNoStop));
  EXPECT_EQ(waits, 1);
}

// A thread that waits for a record is woken itself.
TEST(ReplicatedLogTest, AcksAreLeftToWhoWaits) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Fill(100).ok());
  bool told = false;
  ASSERT_TRUE(world.log()
                  .OnDurable(Lsn(1), [&](const absl::Status&) { told = true; })
                  .ok());
  int waits = 0;
  world.SetElsewhere([&] {
    ++waits;
    EXPECT_TRUE(world.log().WaitForAcks(world.Soon(), kNoStop));
    world.backup(0).Serve();
  });
  EXPECT_TRUE(world.log().Force(Lsn(1), 1, world.Soon()).ok());
  EXPECT_TRUE(told);
  EXPECT_EQ(waits, 1);
}

// A thread that waits for an ack looks again and again: between two looks for
// silent backups that costs no more than the look at the adapter.
TEST(ReplicatorAsSinkTest, EmptyPollsHaveNoNews) {
  ReplicatedLog world({});
  ASSERT_TRUE(world.Append(64).ok());
  Replicator& replication = world.replication();
  const auto polls_with_news = [&] {
    int count = 0;
    while (replication.Poll() != Polled::kIdle) EXPECT_LT(++count, 8);
    return count;
  };
  polls_with_news();
  EXPECT_EQ(polls_with_news(), 0);
  world.backup_clock().now_nanos += 19'999;
  EXPECT_EQ(polls_with_news(), 0);
  world.backup_clock().now_nanos += 1;
  EXPECT_EQ(polls_with_news(), 1) << "it is looked who is silent";
  const ConnectionId backup = world.backup(0).connection;
  const size_t receives = world.fabric().receives(backup);
  ASSERT_TRUE(world.Fill(64).ok());
  ASSERT_TRUE(world.log().Force(Lsn(2), 1, world.Soon()).ok());
  EXPECT_EQ(world.fabric().receives(backup), receives - 1);
  polls_with_news();
  EXPECT_EQ(world.fabric().receives(backup), receives)
      << "what an ack left to do is done";
}

// More than one Poll of the adapter has: the last one says why it ended.
TEST(ReplicatorAsSinkTest, EndsOfConnectionsComeBehindWhatArrivedBefore) {
  class Heard final : public Replicator::Observer {
   public:
    void OnCompletion(const fabric::Completion& /*completion*/) override {
      ++completions;
    }
    void OnConnectionEvent(const ConnectionEvent& /*event*/) override {
      before_the_end = completions;
    }
    int completions = 0;
    int before_the_end = -1;
  };
  DirectFabric here({.sends_max = 128});
  DirectFabric there({.sends_max = 128});
  const ConnectionId connection = DirectFabric::Join(here, there);
  SetClock clock;
  Heard heard;
  Replicator sink(here, clock, {}, {Lsn(0), RingOffset(0)}, &heard);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(here.PostSend(connection, fabric::WorkId(), {}).ok());
  }
  here.AddEvent({ConnectionEvent::Kind::kDisconnected, connection, "", ""});
  sink.Poll();
  EXPECT_EQ(heard.before_the_end, 100);
}

// Completions and events of no backup of the log are somebody else's.
TEST(ReplicatorAsSinkTest, PassesOnWhatIsOfNoBackup) {
  class Heard final : public Replicator::Observer {
   public:
    void OnCompletion(const fabric::Completion& completion) override {
      completions.push_back(completion.connection);
    }
    void OnConnectionEvent(const ConnectionEvent& event) override {
      events.push_back(event.connection);
    }
    std::vector<ConnectionId> completions;
    std::vector<ConnectionId> events;
  };
  fabric::Fabric::Limits limits;
  limits.sends_max = 4;
  DirectFabric here(limits);
  DirectFabric there(limits);
  const ConnectionId connection = DirectFabric::Join(here, there);
  SetClock clock;
  Heard heard;
  Replicator replication(here, clock, {}, {Lsn(0), RingOffset(0)}, &heard);
  Replicator deaf(here, clock, {}, {Lsn(0), RingOffset(0)});
  for (Replicator* sink : {&replication, &deaf}) {
    ASSERT_TRUE(here.PostSend(connection, fabric::WorkId(), {}).ok());
    here.AddEvent({ConnectionEvent::Kind::kDisconnected, connection, "", ""});
    here.AddEvent({ConnectionEvent::Kind::kRequested, ConnectionId(9), "", ""});
    sink->Poll();
  }
  EXPECT_THAT(heard.completions, ::testing::ElementsAre(connection));
  EXPECT_THAT(heard.events,
              ::testing::ElementsAre(connection, ConnectionId(9)));
}

}  // namespace
}  // namespace alpheus::testing
