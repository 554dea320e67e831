// SPDX-License-Identifier: Apache-2.0
// A RocksDB of Debian's package on the plugin: what it does with a WAL, through
// its own interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/transaction_log.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "tests/api/rocksdb/plugin_fixture.h"

namespace alpheus {
namespace {

using rocksdb::Options;
using rocksdb::Status;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;

#define ASSERT_OK(expression)                                  \
  do {                                                         \
    const rocksdb::Status status_of_it = (expression);         \
    ASSERT_TRUE(status_of_it.ok()) << status_of_it.ToString(); \
  } while (false)

class DatabaseTest : public testing::PluginFixture {
 protected:
  // What a crash at this moment leaves, as a database of its own.
  void Crash() {
    // Copying takes a while, in which nothing may change.
    ASSERT_OK(db_->PauseBackgroundWork());
    const std::string copy = CopyOfNow();
    ASSERT_OK(db_->ContinueBackgroundWork());
    Close();
    GoTo(copy);
  }
  std::string CopyOfNow() {
    std::string copy = directory_.File("copy" + std::to_string(++copies_));
    std::filesystem::create_directory(copy);
    constexpr auto kHow = std::filesystem::copy_options::recursive |
                          std::filesystem::copy_options::copy_symlinks;
    std::filesystem::copy(path_, copy + "/db", kHow);
    std::filesystem::copy(wal_options_.log.path, copy + "/wal");
    return copy;
  }
  // Requires: nothing is open.
  void GoTo(const std::string& copy) {
    path_ = copy + "/db";
    wal_options_.log.path = copy + "/wal";
    wal_options_.adopt = true;
    Restart();
  }
  void FlipByte(uint64_t offset) {
    std::vector<std::byte> bytes = testing::ReadFile(wal_options_.log.path);
    bytes[offset] ^= std::byte{1};
    testing::WriteFile(wal_options_.log.path, bytes);
  }
  // Where a text lies in the region.
  uint64_t OffsetOf(const std::string& text) {
    const std::vector<std::byte> bytes =
        testing::ReadFile(wal_options_.log.path);
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
    EXPECT_NE(all.find(text), std::string_view::npos);
    return all.find(text);
  }

  int copies_ = 0;
};

TEST_F(DatabaseTest, PutsAreInTheLogAndThereAfterReopening) {
  Open();
  Put("a", "1", /*sync=*/true);
  Put("b", "2");
  EXPECT_EQ(LogWalFiles().size(), 1u);
  EXPECT_TRUE(PlainWalFiles(path_).empty());
  Reopen();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
}

// One record and one fence for a synced put, though RocksDB appends header and
// payload apart.
TEST_F(DatabaseTest, SyncedPutIsOneRecord) {
  Open();
  const Log& log = (*fs().Store())->log();
  Put("a", "1", true);
  const Lsn before = log.next_lsn();
  Put("b", "2", true);
  EXPECT_EQ(log.next_lsn() - before, 1u);
  EXPECT_EQ(log.Exposed(), 0u);
}

TEST_F(DatabaseTest, SyncedPutsSurviveACrash) {
  Open();
  for (int i = 0; i < 100; ++i) Put(std::to_string(i), "old", true);
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
  for (int i = 0; i < 50; ++i) Put(std::to_string(i), "new", true);
  Crash();
  Open();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(Get(std::to_string(i)), i < 50 ? "new" : "old");
  }
}

// Without the plugin the database would be one without its last writes.
TEST_F(DatabaseTest, DatabaseIsNotOpenedWithoutThePlugin) {
  Open();
  Put("a", "1", true);
  Close();
  options_.env = rocksdb::Env::Default();
  EXPECT_TRUE(TryOpen().IsPathNotFound());
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

// Nor on an empty log: the one that holds its WAL was lost.
TEST_F(DatabaseTest, DatabaseIsNotOpenedOnAnotherLog) {
  Open();
  Put("a", "1", true);
  Close();
  const std::string right = wal_options_.log.path;
  wal_options_.log.path = directory_.File("wrong");
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("(P2)"));
  wal_options_.adopt = true;
  Restart();
  EXPECT_TRUE(TryOpen().IsPathNotFound());
  wal_options_.log.path = right;
  wal_options_.adopt = false;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(DatabaseTest, DatabaseComesFromAnotherWalAndGoesBack) {
  options_.env = rocksdb::Env::Default();
  Open();
  Put("a", "1", true);
  Close();
  wal_options_.adopt = true;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
  Put("b", "2", true);
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
  Close();
  // docs/rocksdb.md#back.
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.is_symlink()) std::filesystem::remove(entry.path());
  }
  options_.env = rocksdb::Env::Default();
  Open();
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("b"), "2");
}

// Acknowledged bytes that can't be read are never the end of a file.
TEST_F(DatabaseTest, DamageBelowTheDurableEndIsCorruption) {
  Open();
  Put("a", "damaged value", true);
  for (int i = 0; i < 10; ++i) Put(std::to_string(i), "x", true);
  Close();
  const uint64_t at = OffsetOf("damaged value");
  FlipByte(at);
  for (const auto mode :
       {rocksdb::WALRecoveryMode::kPointInTimeRecovery,
        rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords,
        rocksdb::WALRecoveryMode::kAbsoluteConsistency,
        rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords}) {
    options_.wal_recovery_mode = mode;
    Restart();
    const Status opened = TryOpen();
    EXPECT_TRUE(opened.IsCorruption()) << opened.ToString();
    EXPECT_THAT(opened.ToString(), HasSubstr("LSN"));
  }
  FlipByte(at);
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "damaged value");
}

// What was never synced may be gone, and is no error.
TEST_F(DatabaseTest, TornTailIsTheEndOfTheFile) {
  for (const auto mode : {rocksdb::WALRecoveryMode::kPointInTimeRecovery,
                          rocksdb::WALRecoveryMode::kAbsoluteConsistency}) {
    options_.wal_recovery_mode = mode;
    Open();
    Put("a", "1", true);
    Put("b", "torn value");
    Crash();
    FlipByte(OffsetOf("torn value"));
    Open();
    EXPECT_EQ(Get("a"), "1");
    EXPECT_EQ(Get("b"), "(none)");
    Put("c", "3", true);
    Reopen();
    EXPECT_EQ(Get("c"), "3");
    ASSERT_OK(db_->Delete(rocksdb::WriteOptions(), "a"));
    Close();
  }
}

// RocksDB removes WAL files that it no longer needs: the ring is used many
// times over.
TEST_F(DatabaseTest, RingGoesRoundWhileMemtablesAreFlushed) {
  options_.write_buffer_size = 256 << 10;
  wal_options_.create_bytes = 4 << 20;
  wal_options_.stall_ms = 60'000;
  Restart();
  Open();
  const std::string value(1000, 'v');
  for (int i = 0; i < 20'000; ++i) {
    Put(std::to_string(i), value + std::to_string(i), i % 100 == 0);
  }
  Reopen();
  for (int i = 0; i < 20'000; i += 7) {
    EXPECT_EQ(Get(std::to_string(i)), value + std::to_string(i));
  }
}

// A ring that is too small for what memtables hold: writes stop with a clear
// error, nothing that was acknowledged is lost, and a flush makes room.
TEST_F(DatabaseTest, FullRingStopsWritesUntilMemtablesAreFlushed) {
  wal_options_.create_bytes = 1 << 20;
  Restart();
  Open();
  rocksdb::WriteOptions sync;
  sync.sync = true;
  const std::string value(1000, 'v');
  int written = 0;
  Status put;
  while ((put = db_->Put(sync, std::to_string(written), value)).ok()) ++written;
  EXPECT_TRUE(put.IsNoSpace()) << put.ToString();
  EXPECT_THAT(put.ToString(), HasSubstr("max_total_wal_size"));
  EXPECT_GT(written, 500);
  EXPECT_EQ(Get("0"), value);
  // RocksDB flushes and goes on by itself, as with a full disk.
  while (!db_->Put(sync, "more", "y").ok()) std::this_thread::yield();
  Reopen();
  for (int i = 0; i < written; ++i) EXPECT_EQ(Get(std::to_string(i)), value);
  EXPECT_EQ(Get("more"), "y");
}

// The same, but the process ends while the ring is full.
TEST_F(DatabaseTest, FullRingIsOpenedAndEmptied) {
  wal_options_.create_bytes = 1 << 20;
  Restart();
  Open();
  const std::string value(1000, 'v');
  int written = 0;
  while (
      db_->Put(rocksdb::WriteOptions(), std::to_string(written), value).ok()) {
    ++written;
  }
  Crash();
  Open();
  for (int i = 0; i < written; ++i) EXPECT_EQ(Get(std::to_string(i)), value);
  Put("more", "y", true);
}

TEST_F(DatabaseTest, UpdatesAreReadFromTheWalAndItsArchive) {
  options_.WAL_ttl_seconds = 1'000'000;
  Open();
  constexpr int kPuts = 60;
  for (int i = 0; i < kPuts; ++i) {
    Put(std::to_string(i), "x");
    if (i % 20 == 9) {
      ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
    }
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
TEST_F(DatabaseTest, ArchiveIsLimitedByItsSize) {
  options_.WAL_size_limit_MB = 1;
  wal_options_.create_bytes = 64 << 20;
  Restart();
  Open();
  const std::string value(10'000, 'v');
  for (int i = 0; i < 600; ++i) {
    Put(std::to_string(i), value);
    if (i % 50 == 49) {
      ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
    }
  }
  const auto used_bytes = [this] {
    return (*fs().Store())->space().used_bytes();
  };
  const size_t files_before = LogWalFiles("archive").size();
  EXPECT_GT(files_before, 5u);
  EXPECT_GT(used_bytes(), 500u * 10'000);
  Reopen();
  Put("more", value, true);
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
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

TEST_F(DatabaseTest, CheckpointIsAPlainDatabase) {
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

TEST_F(DatabaseTest, BackupIsRestoredWithAndWithoutThePlugin) {
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

TEST_F(DatabaseTest, ColumnFamiliesShareTheWal) {
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

TEST_F(DatabaseTest, PreparedTransactionIsCommittedAfterACrash) {
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
TEST_F(DatabaseTest, OthersOfTheProcessReadTheWal) {
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

TEST_F(DatabaseTest, ReadOnlyOpeningLeavesTheWal) {
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

TEST_F(DatabaseTest, WalMayHaveADirectoryOfItsOwn) {
  options_.wal_dir = directory_.File("waldir");
  Open();
  Put("a", "1", true);
  EXPECT_EQ(LogWalFiles().size(), 1u);
  EXPECT_TRUE(PlainWalFiles(options_.wal_dir).empty());
  Reopen();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(DatabaseTest, DestroyedDatabaseLeavesNothingInTheLog) {
  Open();
  Put("a", "1", true);
  Close();
  ASSERT_OK(rocksdb::DestroyDB(path_, options_));
  EXPECT_THAT(LogWalFiles(), IsEmpty());
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "(none)");
}

// The options of RocksDB that change how it writes its WAL, each with a load
// that makes many WAL files, a crash, and a look at everything.
struct WalCase {
  const char* name;
  std::function<void(Options&)> set;
};
void PrintTo(const WalCase& wal_case, std::ostream* out) {
  *out << wal_case.name;
}

class WalOptionsCaseTest : public DatabaseTest,
                           public ::testing::WithParamInterface<WalCase> {};

TEST_P(WalOptionsCaseTest, EverySyncedPutIsThereAfterACrash) {
  options_.write_buffer_size = 64 << 10;
  GetParam().set(options_);
  Open();
  const std::string value(500, 'v');
  constexpr int kPuts = 1500;
  for (int i = 0; i < kPuts; ++i) {
    Put(std::to_string(i), value + std::to_string(i),
        !options_.manual_wal_flush);
    if (i % 500 == 250) {
      ASSERT_OK(db_->SyncWAL());
      ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
    }
  }
  ASSERT_OK(db_->FlushWAL(/*sync=*/true));
  EXPECT_TRUE(PlainWalFiles(path_).empty());
  Crash();
  Open();
  for (int i = 0; i < kPuts; ++i) {
    ASSERT_EQ(Get(std::to_string(i)), value + std::to_string(i));
  }
  Reopen();
  ASSERT_EQ(Get("0"), value + "0");
}

const WalCase kWalCases[] = {
    {"Default", [](Options&) {}},
    {"ManualWalFlush", [](Options& o) { o.manual_wal_flush = true; }},
    {"WalBytesPerSync", [](Options& o) { o.wal_bytes_per_sync = 4096; }},
    {"StrictBytesPerSync",
     [](Options& o) {
       o.wal_bytes_per_sync = 4096;
       o.strict_bytes_per_sync = true;
     }},
    {"RecycleLogFiles", [](Options& o) { o.recycle_log_file_num = 3; }},
    {"TwoWriteQueues", [](Options& o) { o.two_write_queues = true; }},
    {"PipelinedWrite", [](Options& o) { o.enable_pipelined_write = true; }},
    {"UnorderedWrite", [](Options& o) { o.unordered_write = true; }},
    {"WalCompression", [](Options& o) { o.wal_compression = rocksdb::kZSTD; }},
    {"TrackWals",
     [](Options& o) { o.track_and_verify_wals_in_manifest = true; }},
    {"AvoidFlush",
     [](Options& o) {
       o.avoid_flush_during_recovery = true;
       o.avoid_flush_during_shutdown = true;
     }},
    {"UseFsync", [](Options& o) { o.use_fsync = true; }},
    {"DirectIo",
     [](Options& o) { o.use_direct_io_for_flush_and_compaction = true; }},
    {"MaxTotalWalSize", [](Options& o) { o.max_total_wal_size = 128 << 10; }},
    {"WriteBufferInOneWal", [](Options& o) { o.max_write_buffer_number = 6; }},
    {"AbsoluteConsistency",
     [](Options& o) {
       o.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
     }},
    {"TolerateCorruptedTail",
     [](Options& o) {
       o.wal_recovery_mode =
           rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
     }},
    {"SkipAnyCorrupted",
     [](Options& o) {
       o.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
     }},
};

INSTANTIATE_TEST_SUITE_P(All, WalOptionsCaseTest,
                         ::testing::ValuesIn(kWalCases),
                         [](const ::testing::TestParamInfo<WalCase>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace alpheus
