// SPDX-License-Identifier: Apache-2.0
// A RocksDB of Debian's package on the plugin: what is there after a reopening,
// a crash, damage and a full ring, through its own interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "rocksdb/db.h"
#include "tests/api/rocksdb/fs/database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using DatabaseTest = testing::DatabaseFixture;

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
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("File name too long"));
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
  EXPECT_THAT(TryOpen().ToString(),
              HasSubstr("a log that never had a WAL file"));
  wal_options_.adopt = true;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("its marker is here"));
  wal_options_.log.path = right;
  wal_options_.adopt = false;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

// RocksDB makes CURRENT before its first WAL file. Here it refuses in between,
// for want of the default column family; a crash leaves the same.
class NewDatabaseTest : public testing::DatabaseFixture {
 protected:
  void MakeCurrentOnly() {
    rocksdb::DB* none = nullptr;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    const Status refused = rocksdb::DB::Open(
        options_, path_, {{"one", rocksdb::ColumnFamilyOptions()}}, &handles,
        &none);
    EXPECT_TRUE(refused.IsInvalidArgument()) << refused.ToString();
    EXPECT_TRUE(std::filesystem::exists(path_ + "/CURRENT"));
    EXPECT_THAT(LogWalFiles(), IsEmpty());
    Restart();
  }
  // Opens it, and has its puts in the log from then on.
  void ExpectUsable() {
    Open();
    Put("a", "1", true);
    EXPECT_EQ(LogWalFiles().size(), 1u);
    EXPECT_TRUE(PlainWalFiles(path_).empty());
    wal_options_.adopt = false;
    Reopen();
    EXPECT_EQ(Get("a"), "1");
  }
};

TEST_F(NewDatabaseTest, DatabaseThatWasStoppedWhileNewIsOpened) {
  MakeCurrentOnly();
  ExpectUsable();
}

TEST_F(NewDatabaseTest, ItsLogIsNotAnotherDatabases) {
  MakeCurrentOnly();
  path_ = directory_.File("other");
  const std::string refused = TryOpen().ToString();
  EXPECT_THAT(refused, HasSubstr("this log is that of the database"));
  EXPECT_THAT(refused, HasSubstr(directory_.File("db")));
  wal_options_.adopt = true;
  Restart();
  ExpectUsable();
}

TEST_F(NewDatabaseTest, ItIsStillRefusedOnAnotherLog) {
  MakeCurrentOnly();
  wal_options_.log.path = directory_.File("wrong");
  Restart();
  EXPECT_THAT(TryOpen().ToString(),
              HasSubstr("a log that never had a WAL file"));
}

TEST_F(NewDatabaseTest, ItIsTakenOver) {
  MakeCurrentOnly();
  const std::string mine = directory_.File("mine");
  wal_options_.take_over = mine;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("left by a take_over"));
  EXPECT_TRUE(std::filesystem::exists(mine + "/CURRENT"));
  path_ = mine;
  ExpectUsable();
}

// The claim is durable before CURRENT is there: whoever takes that over begins
// again.
TEST_F(NewDatabaseTest, ClaimWithoutADatabaseIsTakenOver) {
  MakeCurrentOnly();
  std::filesystem::remove(path_ + "/CURRENT");
  path_ = wal_options_.take_over = directory_.File("mine");
  Restart();
  ExpectUsable();
}

// The database that stands there had its WAL elsewhere.
TEST_F(NewDatabaseTest, ItIsNotTakenOverIntoAnotherDatabase) {
  MakeCurrentOnly();
  const std::string old = directory_.File("old");
  std::filesystem::create_directory(old);
  std::ofstream(old + "/CURRENT") << "MANIFEST-000001\n";
  path_ = wal_options_.take_over = old;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("has a database already"));
  std::filesystem::remove(directory_.File("db") + "/CURRENT");
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("has a database already"));
}

// Repair makes CURRENT too, and the log is not the one that it had.
TEST_F(NewDatabaseTest, RepairedDatabaseIsRefusedOnAnotherLog) {
  Open();
  Put("a", "1", true);
  Close();
  std::filesystem::remove(path_ + "/CURRENT");
  wal_options_.log.path = directory_.File("wrong");
  Restart();
  ASSERT_OK(rocksdb::RepairDB(path_, options_));
  Restart();
  EXPECT_THAT(TryOpen().ToString(),
              HasSubstr("a log that never had a WAL file"));
}

TEST_F(NewDatabaseTest, RestoredWalDoesNotTakeItsLog) {
  MakeCurrentOnly();
  const std::string restored = directory_.File("restored");
  std::filesystem::create_directory(restored);
  const rocksdb::IOStatus put = rocksdb::WriteStringToFile(
      &fs(), "bytes", restored + "/000004.log", /*should_sync=*/true);
  ASSERT_TRUE(put.ok()) << put.ToString();
  EXPECT_THAT(PlainWalFiles(restored), ElementsAre("000004.log"));
  ExpectUsable();
}

// It is refused with every option, also before the log knows its database.
TEST_F(NewDatabaseTest, SecondOneIsRefusedBesideTheFirst) {
  wal_options_.adopt = true;
  Restart();
  Open();
  const std::string first = std::exchange(path_, directory_.File("other"));
  rocksdb::DB* second = nullptr;
  const std::string refused =
      rocksdb::DB::Open(options_, path_, &second).ToString();
  EXPECT_THAT(refused, HasSubstr("which is open. Give each database"));
  EXPECT_THAT(refused, HasSubstr(first));
  Put("a", "1", true);
  EXPECT_TRUE(PlainWalFiles(first).empty());
  Close();
  wal_options_.adopt = false;
  Restart();
  EXPECT_THAT(TryOpen().ToString(),
              HasSubstr("this log is that of the database"));
  path_ = first;
  Open();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(NewDatabaseTest, ItsWalMayHaveADirectoryOfItsOwn) {
  options_.wal_dir = directory_.File("waldir");
  MakeCurrentOnly();
  ExpectUsable();
  EXPECT_TRUE(PlainWalFiles(options_.wal_dir).empty());
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
  // docs/use/rocksdb.md#back-and-another-size.
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

// A put that was never synced may be gone, and that is no error.
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
  const int written = FillRing(value);
  Crash();
  Open();
  for (int i = 0; i < written; ++i) EXPECT_EQ(Get(std::to_string(i)), value);
  Put("more", "y", true);
}

// RocksDB begins each WAL file with some bytes then.
TEST_F(DatabaseTest, FullRingOfCompressedRecordsIsOpenedAndEmptied) {
  wal_options_.create_bytes = 1 << 20;
  options_.wal_compression = rocksdb::kZSTD;
  Restart();
  Open();
  std::string value;
  while (value.size() < 1000) {
    value += std::to_string(value.size() * 7919 % 10'007);
  }
  const int written = FillRing(value);
  {
    // The room that the last put left is filled, too.
    const auto store = *fs().Store();
    const auto file = *store->Create("archive/rest");
    while (store->Append(*file, AsBytes("x")).ok()) {
    }
  }
  Crash();
  Open();
  for (int i = 0; i < written; ++i) EXPECT_EQ(Get(std::to_string(i)), value);
  Put("more", "y", true);
}

// WST4 (wal_store.h): files that crashes between making and removing leave.
TEST_F(DatabaseTest, RingFullOfEmptyFilesIsOpenedAndEmptied) {
  wal_options_.create_bytes = 1 << 20;
  Restart();
  Open();
  const std::string value(1000, 'v');
  const int written = FillRing(value);
  {
    const auto store = *fs().Store();
    for (int i = 100;; ++i) {
      const auto file = store->Create("000" + std::to_string(i) + ".log");
      ASSERT_TRUE(file.ok()) << file.status();
      if (!(*file)->is_recorded()) break;
    }
  }
  Crash();
  Open();
  for (int i = 0; i < written; ++i) EXPECT_EQ(Get(std::to_string(i)), value);
  Put("more", "y", true);
  // Empty files go with the next flush at the latest.
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
  Close();
  EXPECT_EQ(LogWalFiles().size(), 1u);
  Open();
  EXPECT_EQ(Get("more"), "y");
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

// WHK1. It would be opened without its WAL, and go on with one of no log.
TEST_F(DatabaseTest, AnotherWalDirIsRefused) {
  const std::string apart = directory_.File("waldir");
  Open();
  Put("a", "1", true);
  Close();
  options_.wal_dir = apart;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(TryOpen().ToString(), HasSubstr("Open it with that wal_dir"));
  }
  EXPECT_TRUE(PlainWalFiles(apart).empty());
  options_.wal_dir.clear();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(DatabaseTest, WalDirThatIsLeftOutIsRefused) {
  options_.wal_dir = directory_.File("waldir");
  Open();
  Put("a", "1", true);
  Close();
  const std::string apart = std::exchange(options_.wal_dir, "");
  EXPECT_THAT(TryOpen().ToString(), HasSubstr(apart));
  EXPECT_TRUE(PlainWalFiles(path_).empty());
  options_.wal_dir = apart;
  Open();
  EXPECT_EQ(Get("a"), "1");
}

// Then nothing is opened without its WAL.
TEST_F(DatabaseTest, WalDirMayChangeWhereTheLogHasNoWal) {
  Open();
  Put("a", "1", true);
  Close();
  ASSERT_OK(rocksdb::DestroyDB(path_, options_));
  options_.wal_dir = directory_.File("waldir");
  Open();
  Put("b", "2", true);
  EXPECT_EQ(LogWalFiles().size(), 1u);
  EXPECT_TRUE(PlainWalFiles(options_.wal_dir).empty());
  Reopen();
  EXPECT_EQ(Get("a"), "(none)");
  EXPECT_EQ(Get("b"), "2");
}

// It would replay that WAL as soon as it is opened with the right wal_dir.
TEST_F(DatabaseTest, NewDatabaseBesideAnOldWalIsRefused) {
  options_.wal_dir = directory_.File("waldir");
  Open();
  Put("a", "1", true);
  Close();
  const std::string apart = std::exchange(options_.wal_dir, "");
  ASSERT_OK(rocksdb::DestroyDB(path_, options_));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(TryOpen().ToString(),
                HasSubstr("destroy it with this wal_dir"));
    EXPECT_FALSE(std::filesystem::exists(path_ + "/CURRENT"));
  }
  options_.wal_dir = apart;
  ASSERT_OK(rocksdb::DestroyDB(path_, options_));
  Open();
  EXPECT_EQ(Get("a"), "(none)");
}

// Its file system may not be mounted.
TEST_F(DatabaseTest, DirectoryThatIsEmptyIsNoNewDatabaseOfTheLog) {
  Open();
  Put("a", "1", true);
  Close();
  const std::string away = directory_.File("away");
  std::filesystem::rename(path_, away);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(TryOpen().ToString(), HasSubstr("mounted?"));
    EXPECT_FALSE(std::filesystem::exists(path_ + "/CURRENT"));
  }
  std::filesystem::remove_all(path_);
  std::filesystem::rename(away, path_);
  Open();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(DatabaseTest, WhatWaitsToBeDeletedIsNoWal) {
  Open();
  Put("a", "1", true);
  Close();
  const std::string name = LogWalFiles().front();
  const rocksdb::IOStatus renamed =
      fs().RenameFile(path_ + "/" + name, path_ + "/" + name + ".trash",
                      rocksdb::IOOptions(), nullptr);
  ASSERT_TRUE(renamed.ok()) << renamed.ToString();
  ASSERT_OK(rocksdb::DestroyDB(path_, options_));
  Open();
  EXPECT_EQ(Get("a"), "(none)");
}

// The log's option and RocksDB's say different things, from the first file on.
TEST_F(NewDatabaseTest, WalDirOfTheUriIsThatOfTheOptions) {
  wal_options_.wal_directory = directory_.File("waldir");
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr(wal_options_.wal_directory));
  options_.wal_dir = wal_options_.wal_directory;
  Open();
  Put("a", "1", true);
  EXPECT_EQ(LogWalFiles().size(), 1u);
}

// A database that moves, with a WAL directory of its own.
TEST_F(DatabaseTest, WalApartIsNotAdoptedByGuessing) {
  options_.wal_dir = path_ + "/wal";
  Open();
  Put("a", "1", true);
  Close();
  const std::string moved = directory_.File("moved");
  std::filesystem::rename(path_, moved);
  path_ = moved;
  options_.wal_dir = path_ + "/wal";
  wal_options_.adopt = true;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("by wal_dir= in the URI"));
  wal_options_.wal_directory = options_.wal_dir;
  Restart();
  Open();
  EXPECT_EQ(Get("a"), "1");
}

// WFS1: not even one that passes over what is not there.
TEST_F(DatabaseTest, SecondaryWithoutThePluginFails) {
  Open();
  Put("a", "1", true);
  Close();
  rocksdb::Options options = options_;
  options.env = rocksdb::Env::Default();
  options.create_if_missing = false;
  options.max_open_files = -1;
  rocksdb::DB* raw = nullptr;
  const Status opened = rocksdb::DB::OpenAsSecondary(
      options, path_, directory_.File("secondary"), &raw);
  const std::unique_ptr<rocksdb::DB> db(raw);
  EXPECT_TRUE(opened.IsIOError()) << opened.ToString();
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

}  // namespace
}  // namespace alpheus::wal
