// SPDX-License-Identifier: Apache-2.0
// Other parts of RocksDB that read or keep a WAL, on the plugin: updates and
// archive, checkpoints and backups, column families, transactions, other
// instances of the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/transaction_log.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "tests/api/rocksdb/fs/database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::Status;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;

using DatabaseFeaturesTest = testing::DatabaseFixture;

TEST_F(DatabaseFeaturesTest, UpdatesAreReadFromTheWalAndItsArchive) {
  options_.WAL_ttl_seconds = 1'000'000;
  Open();
  constexpr int kPuts = 60;
  for (int i = 0; i < kPuts; ++i) {
    Put(std::to_string(i), "x");
    if (i % 20 == 9) Flush();
  }
  EXPECT_THAT(LogWalFiles("archive"), Not(IsEmpty()));
  for (const bool reopened : {false, true}) {
    if (reopened) Reopen();
    std::unique_ptr<rocksdb::TransactionLogIterator> updates;
    ASSERT_OK(db_->GetUpdatesSince(5, &updates));
    rocksdb::SequenceNumber expected = 5;
    for (; updates->Valid() && expected <= kPuts; updates->Next()) {
      EXPECT_EQ(updates->GetBatch().sequence, expected++);
    }
    ASSERT_OK(updates->status());
    EXPECT_EQ(expected, kPuts + 1u);
  }
}

// RocksDB looks at the size of its archive when it first removes something, and
// then each ten minutes.
TEST_F(DatabaseFeaturesTest, ArchiveIsLimitedByItsSize) {
  options_.WAL_size_limit_MB = 1;
  wal_options_.create_bytes = 64 << 20;
  Restart();
  Open();
  const std::string value(10'000, 'v');
  for (int i = 0; i < 600; ++i) {
    Put(std::to_string(i), value);
    if (i % 50 == 49) Flush();
  }
  const auto used_bytes = [this] {
    return (*fs().Store())->space().used_bytes();
  };
  const size_t files_before = LogWalFiles("archive").size();
  EXPECT_GT(files_before, 5u);
  EXPECT_GT(used_bytes(), 500u * 10'000);
  Reopen();
  Put("more", value, true);
  Flush();
  // Each has some 500 KB; one came behind the look.
  EXPECT_THAT(LogWalFiles("archive").size(), AllOf(Ge(1u), Le(3u)));
  EXPECT_LT(used_bytes(), 200u * 10'000);
  {
    // The oldest are those that went.
    std::unique_ptr<rocksdb::TransactionLogIterator> updates;
    ASSERT_OK(db_->GetUpdatesSince(db_->GetLatestSequenceNumber(), &updates));
    EXPECT_TRUE(updates->Valid());
  }
  Reopen();
  EXPECT_EQ(Get("0"), value);
  EXPECT_EQ(Get("more"), value);
}

TEST_F(DatabaseFeaturesTest, CheckpointIsAPlainDatabase) {
  Open();
  Put("a", "1", true);
  rocksdb::Checkpoint* raw = nullptr;
  ASSERT_OK(rocksdb::Checkpoint::Create(db_.get(), &raw));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  const std::string copy = directory_.File("checkpoint");
  // So large that it copies the WAL instead of flushing.
  ASSERT_OK(checkpoint->CreateCheckpoint(copy, 1 << 30));
  EXPECT_THAT(PlainWalFiles(copy), Not(IsEmpty()));
  Put("b", "2", true);
  Close();
  options_.env = rocksdb::Env::Default();
  path_ = copy;
  Open();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "(none)");
}

TEST_F(DatabaseFeaturesTest, BackupIsRestoredWithAndWithoutThePlugin) {
  Open();
  Put("a", "1", true);
  {
    rocksdb::BackupEngine* raw = nullptr;
    ASSERT_OK(rocksdb::BackupEngine::Open(
        env_.get(), rocksdb::BackupEngineOptions(directory_.File("backup")),
        &raw));
    const std::unique_ptr<rocksdb::BackupEngine> backup(raw);
    ASSERT_OK(backup->CreateNewBackup(db_.get(), /*flush=*/false));
    Close();
    ASSERT_OK(backup->RestoreDBFromLatestBackup(directory_.File("restored"),
                                                directory_.File("restored")));
  }
  path_ = directory_.File("restored");
  options_.env = rocksdb::Env::Default();
  Open();
  EXPECT_EQ(Get("a"), "1");
  Close();
  wal_options_.log.path = directory_.File("wal2");
  wal_options_.adopt = true;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(DatabaseFeaturesTest, ColumnFamiliesShareTheWal) {
  Open();
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  ASSERT_OK(db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), "other",
                                    &handle));
  rocksdb::WriteOptions sync;
  sync.sync = true;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(db_->Put(sync, handle, std::to_string(i), "other"));
    Put(std::to_string(i), "default", true);
    // Only one of them: older WAL files stay for the other one.
    if (i % 5 == 4) {
      ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
    }
  }
  EXPECT_GT(LogWalFiles().size(), 1u);
  ASSERT_OK(db_->DestroyColumnFamilyHandle(handle));
  Crash();
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  ASSERT_OK(rocksdb::DB::Open(options_, path_,
                              {{"default", rocksdb::ColumnFamilyOptions()},
                               {"other", rocksdb::ColumnFamilyOptions()}},
                              &handles, &db));
  db_.reset(db);
  for (int i = 0; i < 20; ++i) {
    std::string value;
    ASSERT_OK(db_->Get(rocksdb::ReadOptions(), handles[1], std::to_string(i),
                       &value));
    EXPECT_EQ(value, "other");
    EXPECT_EQ(Get(std::to_string(i)), "default");
  }
  for (rocksdb::ColumnFamilyHandle* open : handles) {
    ASSERT_OK(db_->DestroyColumnFamilyHandle(open));
  }
}

TEST_F(DatabaseFeaturesTest, PreparedTransactionIsCommittedAfterACrash) {
  const auto open = [this](std::unique_ptr<rocksdb::TransactionDB>& result) {
    rocksdb::TransactionDB* db = nullptr;
    const Status opened = rocksdb::TransactionDB::Open(
        options_, rocksdb::TransactionDBOptions(), path_, &db);
    result.reset(db);
    return opened;
  };
  std::unique_ptr<rocksdb::TransactionDB> db;
  ASSERT_OK(open(db));
  rocksdb::WriteOptions sync;
  sync.sync = true;
  const auto begin = [&](const std::string& name) {
    std::unique_ptr<rocksdb::Transaction> transaction(
        db->BeginTransaction(sync));
    EXPECT_TRUE(transaction->SetName(name).ok());
    EXPECT_TRUE(transaction->Put(name, "1").ok());
    EXPECT_TRUE(transaction->Prepare().ok());
    return transaction;
  };
  auto prepared = begin("prepared");
  auto committed = begin("committed");
  ASSERT_OK(committed->Commit());
  // The memtable goes, the WAL of what is only prepared must stay.
  ASSERT_OK(db->Flush(rocksdb::FlushOptions()));
  const std::string copy = CopyOfNow();
  prepared.reset();
  committed.reset();
  db.reset();
  GoTo(copy);
  std::unique_ptr<rocksdb::TransactionDB> recovered;
  ASSERT_OK(open(recovered));
  std::string value;
  EXPECT_TRUE(
      recovered->Get(rocksdb::ReadOptions(), "prepared", &value).IsNotFound());
  ASSERT_OK(recovered->Get(rocksdb::ReadOptions(), "committed", &value));
  std::vector<rocksdb::Transaction*> transactions;
  recovered->GetAllPreparedTransactions(&transactions);
  ASSERT_EQ(transactions.size(), 1u);
  ASSERT_OK(transactions[0]->Commit());
  delete transactions[0];
  ASSERT_OK(recovered->Get(rocksdb::ReadOptions(), "prepared", &value));
  EXPECT_EQ(value, "1");
}

// Read-only and secondary instances of the process that has the log.
TEST_F(DatabaseFeaturesTest, OthersOfTheProcessReadTheWal) {
  Open();
  Put("a", "1", true);
  rocksdb::DB* raw = nullptr;
  ASSERT_OK(rocksdb::DB::OpenForReadOnly(options_, path_, &raw));
  const std::unique_ptr<rocksdb::DB> read_only(raw);
  std::string value;
  ASSERT_OK(read_only->Get(rocksdb::ReadOptions(), "a", &value));
  options_.max_open_files = -1;
  ASSERT_OK(rocksdb::DB::OpenAsSecondary(options_, path_,
                                         directory_.File("secondary"), &raw));
  const std::unique_ptr<rocksdb::DB> secondary(raw);
  ASSERT_OK(secondary->Get(rocksdb::ReadOptions(), "a", &value));
  Put("b", "2");
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
  Put("c", "3");
  ASSERT_OK(secondary->TryCatchUpWithPrimary());
  ASSERT_OK(secondary->Get(rocksdb::ReadOptions(), "b", &value));
  ASSERT_OK(secondary->Get(rocksdb::ReadOptions(), "c", &value));
  EXPECT_EQ(value, "3");
}

TEST_F(DatabaseFeaturesTest, ReadOnlyOpeningLeavesTheWal) {
  Open();
  Put("a", "1", true);
  Close();
  Restart();
  rocksdb::DB* raw = nullptr;
  ASSERT_OK(rocksdb::DB::OpenForReadOnly(options_, path_, &raw));
  db_.reset(raw);
  EXPECT_EQ(Get("a"), "1");
  Close();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

}  // namespace
}  // namespace alpheus::wal
