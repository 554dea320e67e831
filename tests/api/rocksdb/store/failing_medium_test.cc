// SPDX-License-Identifier: Apache-2.0
// Media and machines that fail under RocksDB: it stops for good, and never goes
// on by itself behind bytes that may be lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/listener.h"
#include "tests/api/rocksdb/fs/cluster_database_fixture.h"
#include "tests/support/fixtures/failing_msync.h"

namespace alpheus::wal {
namespace {

using rocksdb::Status;

// Notes RocksDB's decisions about errors.
class Decisions final : public rocksdb::EventListener {
 public:
  const char* Name() const override { return "Decisions"; }
  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         Status* error) override {
    severity_.store(static_cast<int>(error->severity()));
    ++errors_;
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                            Status /*error*/, bool* /*is_tried*/) override {
    ++recoveries_;
  }

  int errors() const { return errors_.load(); }
  bool is_fatal() const { return severity_.load() >= Status::kFatalError; }
  int recoveries() const { return recoveries_.load(); }

 private:
  std::atomic<int> errors_{0};
  std::atomic<int> severity_{0};
  std::atomic<int> recoveries_{0};
};

// Puts "a"; then `fail`; then nothing goes on, not even after `heal`, until the
// database was closed and opened again.
template <class Fixture>
class FailingTest : public Fixture {
 protected:
  FailingTest() { this->options_.listeners.push_back(decisions_); }

  template <class Fail, class Heal>
  void ExpectStopsForGood(Fail fail, Heal heal, bool is_fenced) {
    rocksdb::WriteOptions sync;
    sync.sync = true;
    this->Open();
    this->Put("a", "1", true);
    fail();
    const Status put = this->db_->Put(sync, "b", "2");
    EXPECT_TRUE(put.IsIOError()) << put.ToString();
    EXPECT_EQ(put.IsIOFenced(), is_fenced) << put.ToString();
    EXPECT_FALSE(put.IsNoSpace()) << put.ToString();
    heal();
    EXPECT_FALSE(this->db_->Put(rocksdb::WriteOptions(), "c", "3").ok());
    EXPECT_FALSE(this->db_->Put(sync, "c", "3").ok());
    EXPECT_FALSE(this->db_->Flush(rocksdb::FlushOptions()).ok());
    EXPECT_FALSE(this->db_->Resume().ok());
    EXPECT_GE(decisions_->errors(), 1);
    EXPECT_TRUE(decisions_->is_fatal());
    EXPECT_EQ(decisions_->recoveries(), 0);
    this->Close();
    // The same environment opens the log again.
    this->Open();
    EXPECT_EQ(this->Get("a"), "1");
    EXPECT_EQ(this->Get("c"), "(none)");
    this->Put("d", "4", true);
    this->Reopen();
    EXPECT_EQ(this->Get("d"), "4");
  }

  const std::shared_ptr<Decisions> decisions_ = std::make_shared<Decisions>();
};

using FailingMediumTest = FailingTest<testing::PluginFixture>;
using FailingClusterTest = FailingTest<testing::ClusterDatabaseFixture>;

TEST_F(FailingMediumTest, ForceThatFailsStopsTheDatabaseForGood) {
  ExpectStopsForGood(testing::FailMsync, testing::HealMsync,
                     /*is_fenced=*/false);
}

TEST_F(FailingClusterTest, LostQuorumStopsTheDatabaseForGood) {
  ExpectStopsForGood(
      [this] {
        cluster_.Stop(1);
        cluster_.Stop(2);
      },
      [this] {
        cluster_.Start(1);
        cluster_.Start(2);
      },
      /*is_fenced=*/true);
}

// The media of all nodes.
TEST_F(FailingClusterTest, MediaOfTheBackupsStopTheDatabaseForGood) {
  ExpectStopsForGood(
      testing::FailMsync,
      [this] {
        testing::HealMsync();
        for (int node = 1; node <= 3; ++node) {
          cluster_.Stop(node);
          cluster_.Start(node);
        }
      },
      /*is_fenced=*/true);
}

// One of three is no reason to stop.
TEST_F(FailingClusterTest, LostBackupIsNotNoticed) {
  Open();
  Put("a", "1", true);
  cluster_.Stop(3);
  Put("b", "2", true);
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  EXPECT_EQ(decisions_->errors(), 0);
  Reopen();
  EXPECT_EQ(Get("b"), "2");
}

}  // namespace
}  // namespace alpheus::wal
