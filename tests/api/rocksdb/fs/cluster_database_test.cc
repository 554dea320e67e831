// SPDX-License-Identifier: Apache-2.0
// RocksDB with a WAL that several nodes keep, and one that loses it to another
// process.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "api/rocksdb/store/wal_store.h"
#include "log/base/bytes.h"
#include "rocksdb/db.h"
#include "tests/api/rocksdb/fs/cluster_database_fixture.h"
#include "tests/support/fabrics/counted_sends.h"

namespace alpheus::wal {
namespace {

using ClusterDatabaseTest = testing::ClusterDatabaseFixture;

// remote-only: this process keeps no replica, and two of three are enough.
TEST_F(ClusterDatabaseTest, SyncedPutsAreOnWReplicas) {
  Open();
  for (int i = 0; i < 50; ++i) Put(std::to_string(i), "x", true);
  Close();
  cluster_.Stop(1);
  wal_options_ = On(2);
  Restart();
  Open();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Get(std::to_string(i)), "x");
}

// An append that likely is synced next goes to all three nodes at once, and the
// sync only waits: but for the rare append that finds the log's own thread at
// it.
TEST_F(ClusterDatabaseTest, AppendAfterASyncIsSentToTheBackups) {
  constexpr int kRounds = 100;
  Close();
  auto opened = WalStore::Open(On(2), [] { return uint64_t{0}; });
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::unique_ptr<WalStore> store = *std::move(opened);
  const auto file = store->Create("000004.log");
  ASSERT_TRUE(file.ok());
  const std::string record(testing::kCountedBytesMin, 'x');
  const int before = testing::SendsOfThisThread();
  ASSERT_TRUE(store->Append(**file, AsBytes(record)).ok());
  EXPECT_EQ(testing::SendsOfThisThread(), before);
  ASSERT_TRUE(store->Sync(**file).ok());
  int by_appends = 0;
  int by_syncs = 0;
  for (int i = 0; i < kRounds; ++i) {
    const int begun = testing::SendsOfThisThread();
    ASSERT_TRUE(store->Append(**file, AsBytes(record)).ok());
    const int between = testing::SendsOfThisThread();
    ASSERT_TRUE(store->Sync(**file).ok());
    by_appends += between - begun;
    by_syncs += testing::SendsOfThisThread() - between;
  }
  EXPECT_GE(by_appends, 2 * kRounds);
  EXPECT_LE(by_appends, 3 * kRounds);
  EXPECT_LE(by_syncs, kRounds / 2);
}

// local+remote: with the replica of this process's node in its own file.
TEST_F(ClusterDatabaseTest, OwnReplicaIsReadWithoutTheNetwork) {
  wal_options_.log.path = cluster_.ReplicaPath(1);
  Restart();
  Open();
  Put("a", "1", true);
  Reopen();
  EXPECT_EQ(Get("a"), "1");
}

// A process that opens the log fences the one that had it: the old one
// acknowledges nothing more, and its RocksDB stops for good.
TEST_F(ClusterDatabaseTest, OvertakenProcessStopsForGood) {
  Open();
  Put("a", "1", true);
  auto next = Log::Open(On(2).log);
  ASSERT_TRUE(next.ok()) << next.status();
  rocksdb::WriteOptions sync;
  sync.sync = true;
  const rocksdb::Status put = db_->Put(sync, "b", "2");
  EXPECT_TRUE(put.IsIOFenced()) << put.ToString();
  EXPECT_FALSE(db_->Put(rocksdb::WriteOptions(), "c", "3").ok());
  EXPECT_FALSE(db_->Resume().ok());
  // Acknowledged puts are there when the log is opened again.
  ASSERT_TRUE((*next)->Close().ok());
  Close();
  Open();  // the file system opens a log that has failed again
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("c"), "(none)");
  Put("d", "4", true);
}

TEST_F(ClusterDatabaseTest, TooFewReplicasAreAnErrorNotALoss) {
  Open();
  Put("a", "1", true);
  Close();
  cluster_.Stop(1);
  cluster_.Stop(2);
  wal_options_.log.replication.open_timeout_ms = 300;
  Restart();
  const rocksdb::Status opened = TryOpen();
  EXPECT_TRUE(opened.IsIOError()) << opened.ToString();
  cluster_.Start(2);
  wal_options_.log.replication.open_timeout_ms = 60'000;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

}  // namespace
}  // namespace alpheus::wal
