// SPDX-License-Identifier: Apache-2.0
#include "replication/primary/replicator.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "replication/wire/ack.h"
#include "tests/replication/session/data_path.h"

namespace alpheus::testing {
namespace {

class FixedClock final : public Clock {
 public:
  int64_t NowNanos() const override { return now_nanos; }
  int64_t now_nanos = 0;
};

class ReplicatorTest : public ::testing::Test {
 protected:
  void Make(
      replication::Replicator::Options options, int backups,
      uint64_t message_bytes_max = 1 << 20, int joiners = 0,
      uint64_t batch_bytes_max = replication::SessionTerms().batch_bytes_max,
      const replication::Platform& platform = replication::Platform()) {
    path_ = std::make_unique<DataPath>(
        DataPath::Options{.backups = backups + joiners,
                          .message_bytes_max = message_bytes_max,
                          .batch_bytes_max = batch_bytes_max,
                          .platform = platform});
    // Not at the ring's start: lags are counted from where the log is.
    path_->Append(100);
    const RingEnd start = path_->End();
    for (int i = 0; i < backups; ++i) {
      ASSERT_TRUE(path_->session(i).Advance(start).ok());
    }
    ASSERT_TRUE(path_->Round().ok());
    replicator_ = std::make_unique<replication::Replicator>(
        path_->fabric(), clock_, options, start);
    for (int i = 0; i < backups; ++i) {
      path_->session(i).ReadPromisesBy(
          [this](std::span<const std::byte>) { return promise_; });
      replicator_->Add("b" + std::to_string(i), path_->backup(i).connection,
                       path_->TakeSession(i));
    }
  }
  // One that has nothing yet, known as backup `name`.
  void Join(int i, const std::string& name) {
    replicator_->Join(name, path_->backup(i).connection, path_->TakeSession(i));
    path_->fabric().Run();
  }
  void Append() {
    path_->Append(100);
    replicator_->Advance(path_->End());
    path_->fabric().Run();
  }
  // Looks so often meanwhile that all of the time counts; first at once, as
  // logs do behind whatever they tell a replicator.
  void Pass(int64_t nanos) {
    replicator_->CheckBackups();
    for (int i = 0; i < 8; ++i) {
      clock_.now_nanos += nanos / 8;
      replicator_->CheckBackups();
    }
  }
  // Backup i persists and acknowledges.
  void Serve(int i) {
    DataPath::Backup& backup = path_->backup(i);
    ASSERT_TRUE(backup.Drain().ok());
    ASSERT_TRUE(backup.session->Step().ok());
    backup.fabric.Run();
    TakeAll();
  }
  // Not as in the field: tests of its messages are elsewhere.
  void SayOvertaken(int i, const quorum::Promise& by) {
    DataPath::Backup& backup = path_->backup(i);
    said_.push_back(std::make_unique<std::array<std::byte, 8>>());
    const auto key =
        backup.fabric.Register(*said_.back(), fabric::RemoteAccess::kNone);
    ASSERT_TRUE(key.ok());
    ASSERT_TRUE(backup.fabric
                    .PostSend(backup.connection, fabric::WorkId(99),
                              {*key, std::span(*said_.back())})
                    .ok());
    promise_ = by;
  }
  // Begins a confirmation, and sends what that asks.
  void BeginConfirmation() {
    replicator_->BeginConfirmation();
    Poll();
  }
  void Poll() {
    replicator_->Poll();
    path_->fabric().Run();
  }
  bool IsConfirming() { return replicator_->replication_state().is_confirming; }
  // Backup i says so, whatever it has.
  void SendAck(int i, const replication::Ack& ack) {
    PostAck(i, ack);
    path_->backup(i).fabric.Run();
    TakeAll();
  }
  void PostAck(int i, const replication::Ack& ack) {
    DataPath::Backup& backup = path_->backup(i);
    const auto bytes =
        std::make_shared<std::array<std::byte, replication::kAckBytes>>();
    replication::EncodeAck(ack, *bytes);
    acks_.push_back(bytes);
    const auto key =
        backup.fabric.Register(*bytes, fabric::RemoteAccess::kNone);
    ASSERT_TRUE(key.ok());
    ASSERT_TRUE(backup.fabric
                    .PostSend(backup.connection, fabric::WorkId(98),
                              {*key, std::span(*bytes)})
                    .ok());
  }
  void TakeAll() {
    for (const fabric::Completion& completion :
         path_->fabric().DrainCompletions()) {
      EXPECT_TRUE(replicator_->OnCompletion(completion));
    }
  }

  FixedClock clock_;
  std::vector<std::unique_ptr<std::array<std::byte, 8>>> said_;
  std::vector<std::shared_ptr<std::array<std::byte, replication::kAckBytes>>>
      acks_;
  std::optional<quorum::Promise> promise_;  // that what is no ack brings
  std::unique_ptr<DataPath> path_;
  std::unique_ptr<replication::Replicator> replicator_;
};

TEST_F(ReplicatorTest, DurableIsTheWthLargest) {
  Make({.write_quorum = 2}, 2);
  Append();
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  Serve(0);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  Append();
  Serve(0);
  // Without the primary's own: two backups are W, too.
  Serve(1);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(3));
  EXPECT_TRUE(replicator_->status().ok());
}

// RPR9. N = 3, W = 2: the own replica, and one other.
TEST_F(ReplicatorTest, ConfirmationNeedsAnAnswerToWhatWasPostedAfterIt) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  replicator_->BeginConfirmation();
  // The answer to the batch of before: backup 0 may have promised since.
  Serve(0);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_TRUE(IsConfirming());
  EXPECT_FALSE(replicator_->is_idle());
  Poll();
  Serve(1);
  EXPECT_FALSE(IsConfirming());
}

TEST_F(ReplicatorTest, ConfirmationCostsAMessageToEachBackup) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  const uint64_t before = replicator_->batches();
  BeginConfirmation();
  EXPECT_EQ(replicator_->batches(), before + 2);
  Poll();
  EXPECT_EQ(replicator_->batches(), before + 2);
  Serve(0);
  EXPECT_FALSE(IsConfirming());
  Serve(1);
  Poll();
  EXPECT_EQ(replicator_->batches(), before + 2);
  EXPECT_TRUE(replicator_->is_idle());
}

// The batch is answered as well as a message would be.
TEST_F(ReplicatorTest, ConfirmationCostsNothingBesideABatch) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  replicator_->BeginConfirmation();
  const uint64_t before = replicator_->batches();
  Append();
  Poll();
  EXPECT_EQ(replicator_->batches(), before + 2);
  Serve(0);
  EXPECT_FALSE(IsConfirming());
}

TEST_F(ReplicatorTest, ConfirmationIsAskedForOnceThereIsACredit) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  for (uint32_t i = 0; i < path_->terms().credits; ++i) Append();
  const Lsn last = path_->End().lsn;
  replicator_->LocalPersisted(last);
  const uint64_t before = replicator_->batches();
  BeginConfirmation();
  EXPECT_EQ(replicator_->batches(), before);
  Serve(0);
  EXPECT_EQ(replicator_->batches(), before + 1);
  EXPECT_TRUE(IsConfirming());
  path_->fabric().Run();
  Serve(0);
  EXPECT_FALSE(IsConfirming());
}

// RSK5. The own replica shows that no later epoch is open, if each opening
// needs all; but records are on their way that a tail may know to be durable.
TEST_F(ReplicatorTest, ConfirmationWaitsForWhatIsOnItsWay) {
  Make({.write_quorum = 3, .replica_count = 3}, 2);
  const uint64_t before = replicator_->batches();
  BeginConfirmation();
  EXPECT_FALSE(IsConfirming()) << "nobody need be asked";
  EXPECT_EQ(replicator_->batches(), before);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  BeginConfirmation();
  EXPECT_TRUE(IsConfirming());
  Serve(0);
  EXPECT_TRUE(IsConfirming());
  Serve(1);
  EXPECT_FALSE(IsConfirming());
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_EQ(replicator_->batches(), before + 2) << "one batch to each";
}

TEST_F(ReplicatorTest, RemoteOnlyIsConfirmedByBackupsAlone) {
  Make({.write_quorum = 2, .replica_count = 3, .has_local_replica = false}, 3);
  BeginConfirmation();
  Serve(0);
  EXPECT_TRUE(IsConfirming());
  Serve(2);
  EXPECT_FALSE(IsConfirming());
}

// N is unknown: W are enough for any N.
TEST_F(ReplicatorTest, WithoutTheSizeOfTheClusterWConfirm) {
  Make({.write_quorum = 3}, 2);
  BeginConfirmation();
  Serve(0);
  EXPECT_TRUE(IsConfirming());
  Serve(1);
  EXPECT_FALSE(IsConfirming());
}

// RSE3.
TEST_F(ReplicatorTest, AnswerOfAnotherSessionConfirmsNothing) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  BeginConfirmation();
  const Epoch epoch = path_->terms().epoch;
  // Behind the batch of Make.
  SendAck(0, {epoch, replication::SessionId(78), Lsn(1), 2});
  EXPECT_TRUE(IsConfirming());
  SendAck(0, {epoch + 1, kSession, Lsn(1), 2});
  EXPECT_TRUE(IsConfirming());
  SendAck(0, {epoch, kSession, Lsn(1), 1});
  EXPECT_TRUE(IsConfirming()) << "an earlier one again";
  SendAck(0, {epoch, kSession, Lsn(1), 2});
  EXPECT_FALSE(IsConfirming());
}

// Both have promised a later epoch, one before it was asked and one after.
TEST_F(ReplicatorTest, OvertakenPrimaryIsNotConfirmed) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  const quorum::Promise newer{Epoch(1'000'000), {NodeId(3), 0x1f}};
  SayOvertaken(0, newer);
  path_->backup(0).fabric.Run();
  BeginConfirmation();
  EXPECT_EQ(replicator_->in_sync(), 2u);
  EXPECT_TRUE(IsConfirming());
  SayOvertaken(1, newer);
  path_->backup(1).fabric.Run();
  Poll();
  EXPECT_TRUE(absl::IsAborted(replicator_->status()));
  EXPECT_TRUE(IsConfirming());
}

// It has ended before the answer of the other comes.
TEST_F(ReplicatorTest, EndedReplicatorIsNotConfirmed) {
  Make({.write_quorum = 2, .replica_count = 3}, 2);
  BeginConfirmation();
  replicator_->End(absl::AbortedError("another one opens the log"));
  Serve(0);
  EXPECT_TRUE(IsConfirming());
}

// RPR2. The acks of its earlier session say nothing of this one.
TEST_F(ReplicatorTest, BackupThatJoinsConfirmsByItsNewSession) {
  Make({.write_quorum = 2, .replica_count = 3}, 2, 1 << 20, /*joiners=*/1);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  BeginConfirmation();
  Join(2, "b0");
  Poll();
  EXPECT_TRUE(IsConfirming());
  Serve(2);
  EXPECT_FALSE(IsConfirming());
}

// RPR8.
TEST_F(ReplicatorTest, IdleBackupHearsHeartbeats) {
  Make({.write_quorum = 1, .heartbeat_ns = 80}, 1);
  replicator_->CheckBackups();
  const uint64_t first = replicator_->batches();
  Pass(72);
  EXPECT_EQ(replicator_->batches(), first);
  Pass(8);
  EXPECT_EQ(replicator_->batches(), first + 1);
  // One is on its way, and is no batch of records.
  Pass(800);
  EXPECT_EQ(replicator_->batches(), first + 1);
  path_->fabric().Run();
  Serve(0);
  EXPECT_TRUE(replicator_->is_idle());
  Pass(80);
  EXPECT_EQ(replicator_->batches(), first + 2);
  path_->fabric().Run();
  Serve(0);
  // Records are words, too.
  Append();
  Serve(0);
  const uint64_t appended = replicator_->batches();
  Pass(72);
  EXPECT_EQ(replicator_->batches(), appended);
  EXPECT_TRUE(replicator_->status().ok());
}

TEST_F(ReplicatorTest, WithoutHeartbeatsAnIdleBackupHearsNothing) {
  Make({.write_quorum = 1}, 1);
  replicator_->CheckBackups();
  const uint64_t before = replicator_->batches();
  Pass(10'000'000'000);
  EXPECT_EQ(replicator_->batches(), before);
}

// A backup that stands still is dropped while nothing is appended, too.
TEST_F(ReplicatorTest, BackupThatAnswersNoHeartbeatIsDropped) {
  Make({.write_quorum = 1, .ack_timeout_ns = 1'000, .heartbeat_ns = 80}, 1);
  Pass(800);
  EXPECT_EQ(replicator_->in_sync(), 2u);
  Pass(1'600);
  EXPECT_EQ(replicator_->in_sync(), 1u);
}

TEST_F(ReplicatorTest, RemoteOnlyCountsBackupsAlone) {
  Make({.write_quorum = 2, .has_local_replica = false}, 2);
  Append();
  Serve(1);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  EXPECT_EQ(replicator_->in_sync(), 2u);
  Serve(0);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
}

// W = N = 3 and one is lost: nothing more becomes durable, whoever has it.
TEST_F(ReplicatorTest, PoisonedWithoutAQuorum) {
  Make({.write_quorum = 2}, 1);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  EXPECT_TRUE(absl::IsAborted(replicator_->status()));
  EXPECT_EQ(replicator_->status().message(),
            "the log failed with 1 of 2 replicas that must be in sync; records "
            "after LSN 1 have an unknown outcome until the log is opened "
            "again. b0: the backup broke the connection.");
  EXPECT_TRUE(path_->fabric().is_closed(path_->backup(0).connection));
  replicator_->LocalPersisted(Lsn(3));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
}

// RPR2: what it has may be all there is, but it is not asked any more.
TEST_F(ReplicatorTest, LostBackupCountsNoMore) {
  Make({.write_quorum = 2}, 2);
  Append();
  Serve(0);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  EXPECT_TRUE(replicator_->status().ok());
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  Serve(1);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
}

// RSK4.
TEST_F(ReplicatorTest, InSyncIsTheLowestOfThoseInSync) {
  Make({.write_quorum = 2}, 2, 1 << 20, /*joiners=*/1);
  const auto in_sync = [&] {
    return replicator_->replication_state().in_sync_lsn;
  };
  EXPECT_EQ(in_sync(), Lsn(1));
  Append();
  Serve(0);
  EXPECT_EQ(in_sync(), Lsn(1));
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_EQ(in_sync(), Lsn(1));
  Serve(1);
  EXPECT_EQ(in_sync(), Lsn(2));
  // A backup that is out of sync is not waited for; one that joins is.
  Append();
  Serve(0);
  replicator_->LocalPersisted(Lsn(3));
  EXPECT_EQ(in_sync(), Lsn(2));
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(1).connection));
  EXPECT_EQ(in_sync(), Lsn(3));
  Join(2, "b1");
  EXPECT_LT(in_sync(), Lsn(3));
  // Once it has failed nobody is told that all have a record.
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(2).connection));
  EXPECT_FALSE(replicator_->status().ok());
  EXPECT_EQ(in_sync(), Lsn(0));
}

TEST_F(ReplicatorTest, InSyncIsWhatBackupsHaveIfTheOwnMemoryIsNoReplica) {
  Make({.write_quorum = 1, .has_local_replica = false}, 2);
  Append();
  Serve(0);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_EQ(replicator_->replication_state().in_sync_lsn, Lsn(1));
  Serve(1);
  EXPECT_EQ(replicator_->replication_state().in_sync_lsn, Lsn(2));
}

// Records that were durable with the backup stay durable.
TEST_F(ReplicatorTest, DurableLsnNeverGoesBack) {
  Make({.write_quorum = 2}, 2);
  Append();
  Serve(0);
  Serve(1);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
}

TEST_F(ReplicatorTest, PoisonIsForEver) {
  Make({.write_quorum = 3}, 2);
  Append();
  Serve(0);
  Serve(1);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(1).connection));
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  EXPECT_FALSE(replicator_->status().ok());
}

TEST_F(ReplicatorTest, SilentBackupIsDropped) {
  Make({.write_quorum = 1, .ack_timeout_ns = 1000}, 1);
  Pass(5000);  // nothing is in flight: silence is in order
  EXPECT_EQ(replicator_->in_sync(), 2u);
  Append();
  Pass(1000);
  EXPECT_EQ(replicator_->in_sync(), 2u);
  ++clock_.now_nanos;
  replicator_->CheckBackups();
  EXPECT_EQ(replicator_->in_sync(), 1u);
  EXPECT_TRUE(replicator_->status().ok());
}

// Silence is counted from when there is something to say.
TEST_F(ReplicatorTest, BackupMayRestAsLongAsItLikes) {
  Make({.write_quorum = 1, .ack_timeout_ns = 1000}, 1);
  clock_.now_nanos = 1'000'000;
  Append();
  Pass(1000);
  EXPECT_EQ(replicator_->in_sync(), 2u);
}

// RPR4, and P-L4 for the W that must know a head.
TEST_F(ReplicatorTest, BytesAreFreeBehindTheHeadsOfAllInSync) {
  Make({.write_quorum = 2}, 2);
  EXPECT_EQ(replicator_->reuse_limit(), RingOffset(0));
  const RingEnd end = path_->End();
  ASSERT_TRUE(path_->log().log().CleanupThrough(end.lsn).ok());
  const LogPosition head = path_->log().log().head();
  const RingBounds bounds = path_->BoundsWith(head);
  replicator_->AdvanceBounds(bounds);
  EXPECT_EQ(replicator_->durable_head_lsn(), Lsn(1));
  EXPECT_FALSE(replicator_->is_idle());
  path_->fabric().Run();
  Serve(0);
  EXPECT_EQ(replicator_->durable_head_lsn(), head.lsn);
  EXPECT_LT(replicator_->reuse_limit(), bounds.ceiling);
  Serve(1);
  EXPECT_EQ(replicator_->reuse_limit(), bounds.ceiling);
  EXPECT_TRUE(replicator_->is_idle());
}

// A backup without a record hears of it all the same: W others have it.
TEST_F(ReplicatorTest, BackupsAreToldWhatIsDurable) {
  Make({.write_quorum = 2}, 2);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  Serve(0);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  replicator_->AnnounceDurable();
  EXPECT_FALSE(replicator_->is_idle());
  path_->fabric().Run();
  for (const int i : {0, 1}) {
    Serve(i);
    EXPECT_EQ(path_->backup(i).session->durable_lsn(), Lsn(2));
  }
  EXPECT_TRUE(replicator_->is_idle());
}

// The head alone is in flight, and nobody says a word.
TEST_F(ReplicatorTest, SilenceAboutAHeadIsSilence) {
  Make({.write_quorum = 1, .ack_timeout_ns = 1000}, 1);
  ASSERT_TRUE(path_->log().log().CleanupThrough(Lsn(1)).ok());
  const RingBounds bounds = path_->BoundsWith(path_->log().log().head());
  replicator_->AdvanceBounds(bounds);
  Pass(1008);
  EXPECT_EQ(replicator_->in_sync(), 1u);
  EXPECT_EQ(replicator_->reuse_limit(), bounds.ceiling);
}

TEST_F(ReplicatorTest, BackupThatLagsTooFarIsDropped) {
  Make({.write_quorum = 1, .lag_bytes_max = 300}, 1);
  Append();  // 192 bytes in the ring
  replicator_->CheckBackups();
  EXPECT_EQ(replicator_->in_sync(), 2u);
  Append();
  replicator_->CheckBackups();
  EXPECT_EQ(replicator_->in_sync(), 1u);
}

// RPR2, P-A5.
TEST_F(ReplicatorTest, BackupThatJoinsTakesThePlaceOfTheLostOne) {
  Make({.write_quorum = 2}, 2, 1 << 20, /*joiners=*/1);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(1).connection));
  EXPECT_TRUE(absl::IsUnavailable(replicator_->StatusOf("b1")));
  EXPECT_TRUE(absl::IsNotFound(replicator_->StatusOf("nobody")));
  Append();
  Join(2, "b1");
  EXPECT_TRUE(replicator_->StatusOf("b1").ok());
  EXPECT_EQ(replicator_->in_sync(), 3u);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  Serve(2);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_TRUE(replicator_->status().ok());
}

// A backup that joins takes back nothing that is durable, whatever it has.
TEST_F(ReplicatorTest, BackupThatJoinsTakesNothingBack) {
  Make({.write_quorum = 1}, 0, 1 << 20, /*joiners=*/1);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  Join(0, "b0");
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
}

// RPR6: acks of others are taken without more of it being sent.
TEST_F(ReplicatorTest, BackupThatJoinsGetsTheRestWithPollOnly) {
  Make({.write_quorum = 2}, 2, 1 << 20, /*joiners=*/1, /*batch_bytes_max=*/64);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(1).connection));
  for (int i = 0; i < 9; ++i) Append();
  EXPECT_FALSE(replicator_->is_catching_up());
  Join(2, "b1");
  EXPECT_TRUE(replicator_->is_catching_up());
  Serve(2);  // the first four, from LSN 1 on
  Serve(2);
  EXPECT_EQ(path_->backup(2).session->persisted_lsn(), Lsn(4));
  Append();
  Serve(2);
  EXPECT_EQ(path_->backup(2).session->persisted_lsn(), Lsn(4));
  EXPECT_TRUE(replicator_->CheckBackups());
  path_->fabric().Run();
  Serve(2);
  EXPECT_EQ(path_->backup(2).session->persisted_lsn(), Lsn(8));
  EXPECT_TRUE(replicator_->CheckBackups());
  path_->fabric().Run();
  EXPECT_FALSE(replicator_->is_catching_up());  // all is posted
  Serve(2);
  Append();  // as to any other
  Serve(2);
  EXPECT_EQ(path_->backup(2).session->persisted_lsn(), Lsn(12));
}

// RPR6: so many bytes a second, and twice what is appended; without an append
// there is nobody to be disturbed.
TEST_F(ReplicatorTest, BackupThatJoinsLeavesTimeToThoseWhoAppend) {
  constexpr int64_t kMilli = 1'000'000;
  // A record each millisecond.
  Make({.write_quorum = 2, .catch_up_bytes_per_second = 192'000}, 2, 1 << 20,
       /*joiners=*/1, /*batch_bytes_max=*/64);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(1).connection));
  for (int i = 0; i < 13; ++i) Append();
  Join(2, "b1");
  const auto serve = [&] {
    path_->fabric().Run();
    Serve(2);
    return path_->backup(2).session->persisted_lsn();
  };
  EXPECT_EQ(serve(), Lsn(4));
  for (const uint64_t expected : {4, 8, 8, 12, 12, 16}) {
    clock_.now_nanos += kMilli;
    Append();
    replicator_->CheckBackups();
    EXPECT_EQ(serve(), Lsn(expected));
  }
  clock_.now_nanos += 20 * kMilli;
  Lsn last(16);
  while (replicator_->is_catching_up()) {
    EXPECT_TRUE(replicator_->CheckBackups());
    const Lsn now = serve();
    ASSERT_GT(now, last);
    last = now;
  }
  EXPECT_EQ(last, path_->End().lsn);
}

TEST_F(ReplicatorTest, LostBackupCatchesUpNoMore) {
  Make({.write_quorum = 1}, 1, 1 << 20, /*joiners=*/1, /*batch_bytes_max=*/64);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  for (int i = 0; i < 9; ++i) Append();
  Join(1, "b0");
  EXPECT_TRUE(replicator_->is_catching_up());
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(1).connection));
  EXPECT_FALSE(replicator_->is_catching_up());
}

TEST_F(ReplicatorTest, BackupThatJoinsMayLagUntilItOnceDidNot) {
  Make({.write_quorum = 1, .lag_bytes_max = 300}, 0, 1 << 20, /*joiners=*/1);
  Append();
  Join(0, "b0");  // 384 bytes behind
  replicator_->CheckBackups();
  EXPECT_TRUE(replicator_->StatusOf("b0").ok());
  Serve(0);
  replicator_->CheckBackups();
  Append();
  replicator_->CheckBackups();
  EXPECT_TRUE(replicator_->StatusOf("b0").ok());
  Append();
  replicator_->CheckBackups();
  EXPECT_FALSE(replicator_->StatusOf("b0").ok());
}

TEST_F(ReplicatorTest, FailedWriteDropsTheBackup) {
  Make({.write_quorum = 2}, 1);
  path_->Append(100);
  replicator_->Advance(path_->End());
  path_->fabric().Break(path_->backup(0).connection);
  path_->fabric().Run();
  TakeAll();
  EXPECT_FALSE(replicator_->status().ok());
  EXPECT_EQ(replicator_->in_sync(), 1u);
}

// RPR7.
TEST_F(ReplicatorTest, OvertakenPrimarySaysByWhom) {
  Make({.write_quorum = 2}, 2);
  const quorum::Promise newer{Epoch(1'000'000), {NodeId(3), 0x1f}};
  for (int i = 0; i < 2; ++i) {
    SayOvertaken(i, newer);
    path_->backup(i).fabric.Run();
    // The next post fails before the backup's last word is taken.
    path_->fabric().BreakKnown(path_->backup(i).connection);
  }
  Append();
  EXPECT_TRUE(replicator_->status().ok());
  TakeAll();
  EXPECT_EQ(replicator_->status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(
      replicator_->status().message(),
      "node 3, process 1f, opens epoch 1000000; the log failed with 1 of 2 "
      "replicas that must be in sync; records after LSN 1 have an unknown "
      "outcome until the log is opened again. b0: its promise is given: node "
      "3, process 1f, opens epoch 1000000. b1: its promise is given: node 3, "
      "process 1f, opens epoch 1000000.");
}

// RPR7. Acks come before the backup's last word, and their receives can't be
// posted again.
TEST_F(ReplicatorTest, LastWordIsTakenBehindAcks) {
  Make({.write_quorum = 2}, 1);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  DataPath::Backup& backup = path_->backup(0);
  const replication::Ack ack{path_->terms().epoch, path_->terms().session,
                             Lsn(2), 2};
  replication::Ack of_another_session = ack;
  of_another_session.session = ack.session + 1;
  // As many as may wait to be posted again, and one.
  for (int i = 0; i < 4; ++i) PostAck(0, of_another_session);
  PostAck(0, ack);
  SayOvertaken(0, {Epoch(1'000'000), {NodeId(3), 0x1f}});
  backup.fabric.Run();
  path_->fabric().BreakKnown(backup.connection);
  TakeAll();
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_NE(replicator_->status().message().find("opens epoch 1000000"),
            std::string::npos)
      << replicator_->status();
}

// RPR7. As many receives as may wait to be posted again do, and each credit's
// ack is under way.
TEST_F(ReplicatorTest, LastWordFindsAReceiveBehindAllAcks) {
  Make({.write_quorum = 2}, 1);
  replicator_->CheckBackups();  // posts all
  const replication::Ack of_another_session{
      path_->terms().epoch, path_->terms().session + 1, Lsn(1), 1};
  for (int i = 0; i < 4; ++i) SendAck(0, of_another_session);
  for (uint32_t i = 0; i < path_->terms().credits; ++i) {
    PostAck(0, of_another_session);
  }
  SayOvertaken(0, {Epoch(1'000'000), {NodeId(3), 0x1f}});
  path_->backup(0).fabric.Run();
  TakeAll();
  EXPECT_NE(replicator_->status().message().find("opens epoch 1000000"),
            std::string::npos)
      << replicator_->status();
}

// RPR7. The adapter knows of the end, and has not given it yet, nor what came
// before.
TEST_F(ReplicatorTest, RefusedPostDropsNobodyBeforeTheLastWord) {
  Make({.write_quorum = 2}, 1);
  path_->fabric().BreakKnown(path_->backup(0).connection);
  Append();
  EXPECT_FALSE(replicator_->CheckBackups());
  EXPECT_FALSE(replicator_->CheckBackups());
  EXPECT_TRUE(replicator_->status().ok()) << replicator_->status();
  SayOvertaken(0, {Epoch(1'000'000), {NodeId(3), 0x1f}});
  path_->backup(0).fabric.Run();
  TakeAll();
  EXPECT_NE(replicator_->status().message().find("opens epoch 1000000"),
            std::string::npos)
      << replicator_->status();
}

// Nothing says more of it.
TEST_F(ReplicatorTest, EndDropsABackupThatNothingCanBePostedTo) {
  Make({.write_quorum = 2}, 1);
  path_->fabric().BreakKnown(path_->backup(0).connection);
  Append();
  replicator_->CheckBackups();
  EXPECT_EQ(replicator_->in_sync(), 2u);
  EXPECT_TRUE(replicator_->Disconnected(path_->backup(0).connection));
  EXPECT_EQ(replicator_->in_sync(), 1u);
  EXPECT_NE(replicator_->status().message().find("is broken"),
            std::string::npos);
}

// RPR7: its end does not come, and it has acknowledged everything.
TEST_F(ReplicatorTest, BackupThatNothingCanBePostedToIsSilent) {
  Make({.write_quorum = 2, .ack_timeout_ns = 1000}, 1);
  path_->fabric().BreakKnown(path_->backup(0).connection);
  Pass(800);  // the receives of its acks can't be posted again
  EXPECT_EQ(replicator_->in_sync(), 2u);
  EXPECT_FALSE(replicator_->is_idle());
  Pass(400);
  EXPECT_EQ(replicator_->in_sync(), 1u);
  EXPECT_FALSE(replicator_->status().ok());
}

// A promise of this epoch, or of an older one, overtakes nobody.
TEST_F(ReplicatorTest, OldPromiseIsNoReason) {
  Make({.write_quorum = 2}, 1);
  SayOvertaken(0, {path_->terms().epoch, {NodeId(3), 0x1f}});
  path_->backup(0).fabric.Run();
  TakeAll();
  EXPECT_NE(replicator_->status().message().find("are no ack"),
            std::string::npos);
}

// RPR4: the primary's process is stopped for an hour while a batch is under
// way.
TEST_F(ReplicatorTest, OwnPauseIsNobodysSilence) {
  Make({.write_quorum = 2, .ack_timeout_ns = 1000}, 1);
  Append();
  Pass(600);
  clock_.now_nanos += 3'600'000'000'000;
  replicator_->CheckBackups();
  EXPECT_EQ(replicator_->in_sync(), 2u);
  Serve(0);
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  // Its silence afterwards counts as ever.
  Append();
  Pass(1008);
  EXPECT_EQ(replicator_->in_sync(), 1u);
}

// A batch that takes longer than ack_timeout_ns to send. Its last piece does
// not say whether a program is there.
TEST_F(ReplicatorTest, ArrivingPiecesAreNoSilence) {
  Make({.write_quorum = 1, .ack_timeout_ns = 1000}, 1,
       /*message_bytes_max=*/64);
  path_->Append(300);
  replicator_->Advance(path_->End());
  path_->fabric().Run();
  const auto completions = path_->fabric().DrainCompletions();
  EXPECT_EQ(completions.size(), 6u);
  for (const fabric::Completion& completion : completions) {
    Pass(800);
    EXPECT_EQ(replicator_->in_sync(), 2u);
    EXPECT_TRUE(replicator_->OnCompletion(completion));
  }
  Pass(208);
  EXPECT_EQ(replicator_->in_sync(), 1u);
}

// Where records end at the primary they are durable by the adapter's word, and
// the backup's program is still asked for: it stands still here.
TEST_F(ReplicatorTest, CompletionsAreNoSignOfTheProgram) {
  Make({.write_quorum = 2, .has_local_replica = false, .ack_timeout_ns = 1000},
       2, 1 << 20, /*joiners=*/0, replication::SessionTerms().batch_bytes_max,
       *replication::ParsePlatform("mhp,infiniband"));
  Append();
  Pass(800);
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(1));
  TakeAll();
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_FALSE(replicator_->is_idle());
  Pass(208);
  EXPECT_EQ(replicator_->in_sync(), 0u);
}

// RPR9. The records are durable by the adapter's word; the program of a backup
// may have promised another epoch.
TEST_F(ReplicatorTest, CompletionsConfirmNothing) {
  Make({.write_quorum = 2, .replica_count = 3, .has_local_replica = false}, 3,
       1 << 20, /*joiners=*/0, replication::SessionTerms().batch_bytes_max,
       *replication::ParsePlatform("mhp,infiniband"));
  replicator_->BeginConfirmation();
  Append();
  TakeAll();
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  EXPECT_TRUE(IsConfirming());
  Serve(0);
  EXPECT_TRUE(IsConfirming());
  Serve(1);
  EXPECT_FALSE(IsConfirming());
}

// P-H20. Where one replica is enough, the own one too.
TEST_F(ReplicatorTest, NothingIsDurableOnceTheLogWasEnded) {
  Make({.write_quorum = 1}, 1);
  Append();
  replicator_->LocalPersisted(Lsn(2));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  Append();
  replicator_->End(absl::AbortedError("another one came"));
  EXPECT_EQ(replicator_->status().code(), absl::StatusCode::kAborted);
  EXPECT_NE(replicator_->status().message().find("another one came"),
            std::string::npos);
  EXPECT_NE(replicator_->status().message().find("after LSN 2"),
            std::string::npos);
  EXPECT_FALSE(replicator_->StatusOf("b0").ok());
  replicator_->LocalPersisted(Lsn(3));
  EXPECT_EQ(replicator_->durable_lsn(), Lsn(2));
  replicator_->End(absl::AbortedError("and another"));
  EXPECT_EQ(replicator_->status().message().find("and another"),
            std::string::npos);
}

TEST_F(ReplicatorTest, KnowsItsOwnConnections) {
  Make({}, 1);
  fabric::Completion completion;
  completion.connection = fabric::ConnectionId(99);
  EXPECT_FALSE(replicator_->OnCompletion(completion));
  EXPECT_FALSE(replicator_->Disconnected(fabric::ConnectionId(99)));
}

}  // namespace
}  // namespace alpheus::testing
