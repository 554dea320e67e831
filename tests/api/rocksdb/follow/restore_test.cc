// SPDX-License-Identifier: Apache-2.0
// A database of which one place, directory or log, is replaced alone: the table
// of docs/use/rocksdb.md#vouching with a real RocksDB, and each remedy that a
// message names, carried out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/log_reader.h"
#include "api/rocksdb/failover/directory_vouch.h"
#include "log/base/bytes.h"
#include "rocksdb/db.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "tests/api/rocksdb/follow/following_instance.h"
#include "tests/api/rocksdb/fs/database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::Status;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RestoreTest : public testing::DatabaseFixture {
 protected:
  // Puts in a process of its own.
  void PutOnce(const std::string& key, const std::string& value) {
    Restart();
    Open();
    Put(key, value, /*sync=*/true);
    Close();
  }
  std::string Keys() {
    std::string keys;
    const std::unique_ptr<rocksdb::Iterator> at(
        db_->NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      keys += at->key().ToString() + "=" + at->value().ToString() + " ";
    }
    EXPECT_TRUE(at->status().ok()) << at->status().ToString();
    return keys;
  }
  std::unique_ptr<rocksdb::BackupEngine> Engine(rocksdb::Env* env) {
    rocksdb::BackupEngine* raw = nullptr;
    const Status opened = rocksdb::BackupEngine::Open(
        env, rocksdb::BackupEngineOptions(directory_.File("backup")), &raw);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    return std::unique_ptr<rocksdb::BackupEngine>(raw);
  }
  // a=1 and b=1 are in the backup, and in its WAL.
  void MakeBackup() {
    PutOnce("a", "1");
    Restart();
    Open();
    Put("b", "1", true);
    ASSERT_OK(Engine(env_.get())->CreateNewBackup(db_.get(), /*flush=*/false));
    Close();
  }
  void Restore(rocksdb::Env* env, bool keeps_wal = false) {
    ASSERT_OK(Engine(env)->RestoreDBFromLatestBackup(
        path_, path_, rocksdb::RestoreOptions(keeps_wal)));
  }
  void RestoreWithoutThePlugin() { Restore(rocksdb::Env::Default()); }
  void MakeCheckpoint(const std::string& path) {
    rocksdb::Checkpoint* raw = nullptr;
    ASSERT_OK(rocksdb::Checkpoint::Create(db_.get(), &raw));
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
    ASSERT_OK(checkpoint->CreateCheckpoint(path));
  }
  static void Copy(const std::string& from, const std::string& to) {
    std::filesystem::create_directory(to);
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
      const std::string target = to + "/" + entry.path().filename().string();
      std::filesystem::remove(target);
      std::filesystem::copy(entry.path(), target,
                            std::filesystem::copy_options::copy_symlinks);
    }
  }
  void Replace(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(to);
    Copy(from, to);
  }
  // For writing, only to read, and once more: nothing is changed by the first.
  void ExpectRefused(const std::string& why) {
    for (int i = 0; i < 2; ++i) {
      Restart();
      EXPECT_THAT(TryOpen().ToString(), HasSubstr(why));
      db_.reset();
    }
    Restart();
    options_.create_if_missing = false;
    rocksdb::DB* raw = nullptr;
    const Status read = rocksdb::DB::OpenForReadOnly(options_, path_, &raw);
    const std::unique_ptr<rocksdb::DB> db(raw);
    EXPECT_THAT(read.ToString(), HasSubstr(why));
    options_.create_if_missing = true;
  }
  void ExpectRefusedWithAnyWord() {
    for (const bool adopts : {false, true}) {
      for (bool WalOptions::* word :
           {&WalOptions::adopt, &WalOptions::drop_wal, &WalOptions::keep_wal}) {
        wal_options_.*word = true;
        wal_options_.adopt = adopts;
        Restart();
        const std::string refused = TryOpen().ToString();
        EXPECT_THAT(refused, HasSubstr("Nothing was changed"));
        EXPECT_THAT(refused, Not(HasSubstr("drop_wal=true")));
        EXPECT_THAT(refused, Not(HasSubstr("adopt=true")));
        db_.reset();
        wal_options_.*word = wal_options_.adopt = false;
      }
    }
  }
  // By a word of the URI, which is not needed again.
  void ExpectKeys(const std::string& keys, bool WalOptions::* word = nullptr) {
    if (word != nullptr) wal_options_.*word = true;
    Restart();
    Open();
    EXPECT_EQ(Keys(), keys);
    Close();
    if (word != nullptr) wal_options_.*word = false;
    PutOnce("z", "9");
    Restart();
    Open();
    EXPECT_EQ(Keys(), keys + "z=9 ");
    EXPECT_TRUE(PlainWalFiles(path_).empty());
    Close();
  }
  // Makes the directory as a version of the plugin left it that did not vouch.
  void MakeUnvouched() {
    Close();
    env_.reset();
    fs_.reset();
    std::filesystem::remove(path_ + "/ALPHEUS");
    const std::string old = wal_options_.log.path + ".old";
    std::filesystem::rename(wal_options_.log.path, old);
    auto made =
        Log::Format({.path = wal_options_.log.path, .region_bytes = 16 << 20});
    ASSERT_TRUE(made.ok()) << made.status();
    auto log = Log::Open(wal_options_.log);
    ASSERT_TRUE(log.ok()) << log.status();
    auto reader = LogReader::Open(old);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const absl::Status copied =
        (*reader)->ForEach([&](const ReaderRecord& record) -> absl::Status {
          std::string payload(AsText(record.payload));
          if (payload.size() > 5 && payload[4] == 2) {
            payload[4] = 1;
            payload.resize(payload.rfind('\0', payload.rfind('\0') - 1));
          }
          return (*log)->Append(AsBytes(payload), ForceOptions()).status();
        });
    ASSERT_TRUE(copied.ok()) << copied;
    ASSERT_TRUE((*log)->Close().ok());
    std::filesystem::remove(old);
  }

  // A copy of an open database, whose WAL has a=1 and b=1.
  void CopyWhileOpen() {
    Open();
    Put("a", "1", true);
    Put("b", "1", true);
    Copy(path_, copy_);
  }
  // Removes the symbolic links: some tools don't copy them.
  static void DropLinks(const std::string& path) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.is_symlink()) std::filesystem::remove(entry.path());
    }
  }
  Status TryRead(const std::string& path) {
    options_.create_if_missing = false;
    rocksdb::DB* raw = nullptr;
    Status read = rocksdb::DB::OpenForReadOnly(options_, path, &raw);
    db_.reset(raw);
    options_.create_if_missing = true;
    return read;
  }

  const std::string copy_ = directory_.File("copy");
  static constexpr const char* kOlder = "this copy of the database is of";
  static constexpr const char* kReplaced = "put here without the plugin";
};

TEST_F(RestoreTest, BackupRestoredInPlaceIsRefused) {
  MakeBackup();
  PutOnce("c", "1");
  PutOnce("d", "1");
  RestoreWithoutThePlugin();
  ExpectRefused(kReplaced);
  ExpectKeys("a=1 b=1 ", &WalOptions::drop_wal);
}

TEST_F(RestoreTest, OverwrittenKeyComesBack) {
  MakeBackup();
  PutOnce("c", "1");
  PutOnce("a", "2");
  RestoreWithoutThePlugin();
  ExpectRefused(kReplaced);
  ExpectKeys("a=1 b=1 ", &WalOptions::drop_wal);
}

TEST_F(RestoreTest, BackupRestoredInPlaceOfARemovedDirectoryIsRefused) {
  MakeBackup();
  PutOnce("c", "1");
  std::filesystem::remove_all(path_);
  RestoreWithoutThePlugin();
  ExpectRefused(kReplaced);
  ExpectKeys("a=1 b=1 ", &WalOptions::drop_wal);
}

TEST_F(RestoreTest, CheckpointInPlaceIsRefused) {
  MakeBackup();
  Restart();
  Open();
  MakeCheckpoint(directory_.File("checkpoint"));
  // In the same MANIFEST.
  Put("c", "1", true);
  Close();
  std::filesystem::remove_all(path_);
  std::filesystem::rename(directory_.File("checkpoint"), path_);
  ExpectRefused(kReplaced);
  ExpectKeys("a=1 b=1 ", &WalOptions::drop_wal);
}

// MANIFEST and tables come from the checkpoint; the file that vouches is the
// old one.
TEST_F(RestoreTest, CheckpointCopiedOverTheDatabaseIsRefused) {
  MakeBackup();
  Restart();
  Open();
  MakeCheckpoint(directory_.File("checkpoint"));
  Put("c", "1", true);
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
  Put("d", "1", true);
  Close();
  Copy(directory_.File("checkpoint"), path_);
  ExpectRefused("the tables were replaced");
  ExpectKeys("a=1 b=1 ", &WalOptions::drop_wal);
}

// The plugin sees what is done.
TEST_F(RestoreTest, RestoreWithThePluginNeedsNoWord) {
  MakeBackup();
  PutOnce("c", "1");
  PutOnce("a", "2");
  Restart();
  Restore(env_.get());
  ExpectKeys("a=1 b=1 ");
}

TEST_F(RestoreTest, RestoreWithThePluginOfARemovedDirectoryNeedsNoWord) {
  MakeBackup();
  PutOnce("c", "1");
  PutOnce("a", "2");
  std::filesystem::remove_all(path_);
  Restart();
  Restore(env_.get());
  ExpectKeys("a=1 b=1 ");
}

TEST_F(RestoreTest, RestoreWithThePluginOverOneWithoutNeedsNoWord) {
  MakeBackup();
  PutOnce("c", "1");
  RestoreWithoutThePlugin();
  ExpectRefused(kReplaced);
  Restart();
  Restore(env_.get());
  ExpectKeys("a=1 b=1 ");
}

// RocksDB calls this keep_log_files: the tables of the backup, and all WAL
// since.
TEST_F(RestoreTest, WalIsKeptWhenAsked) {
  PutOnce("a", "1");
  Restart();
  Open();
  ASSERT_OK(Engine(env_.get())->CreateNewBackup(db_.get(), /*flush=*/true));
  Put("a", "2", true);
  Close();
  Restore(rocksdb::Env::Default(), /*keeps_wal=*/true);
  ExpectRefused(kReplaced);
  ExpectKeys("a=2 ", &WalOptions::keep_wal);
}

TEST_F(RestoreTest, AdoptingIsNoWordForAReplacedDirectory) {
  MakeBackup();
  PutOnce("c", "1");
  RestoreWithoutThePlugin();
  wal_options_.adopt = true;
  ExpectRefused(kReplaced);
}

TEST_F(RestoreTest, OlderCopyOfTheDirectoryIsRefused) {
  PutOnce("a", "1");
  Copy(path_, directory_.File("copy"));
  PutOnce("b", "1");
  PutOnce("a", "2");
  Replace(directory_.File("copy"), path_);
  ExpectRefused("this copy of the database is of generation");
  // Its WAL was in the log, which has gone on.
  wal_options_.drop_wal = true;
  Restart();
  Open();
  Close();
}

// DV4. The WAL file of a=1 and b=1 is gone by then, and the log has newer data.
TEST_F(RestoreTest, CopyOfAnOpenDatabaseIsRefusedWhenItsWalIsGone) {
  CopyWhileOpen();
  Flush();
  Put("c", "1", true);
  Put("a", "2", true);
  Close();
  const std::string newest = directory_.File("newest");
  Copy(path_, newest);
  for (const bool has_markers : {true, false}) {
    if (!has_markers) DropLinks(copy_);
    Replace(copy_, path_);
    ExpectRefused(kOlder);
    Copy(copy_, path_);
    ExpectRefused(kOlder);
    // Over the newer one, whose files stay.
    Replace(newest, path_);
    Copy(copy_, path_);
    ExpectRefused(kOlder);
  }
  Replace(newest, path_);
  ExpectKeys("a=2 b=1 c=1 ");
}

// The log has no data, and had what the copy needs.
TEST_F(RestoreTest, CopyOfAnOpenDatabaseIsRefusedBesideAnEmptyWal) {
  CopyWhileOpen();
  Flush();
  Close();
  const std::string newest = directory_.File("newest");
  Copy(path_, newest);
  DropLinks(copy_);
  Replace(copy_, path_);
  ExpectRefused(kOlder);
  Replace(newest, path_);
  ExpectKeys("a=1 b=1 ");
}

TEST_F(RestoreTest, CopyOfAnOpenDatabaseIsRefusedAfterEachFlush) {
  CopyWhileOpen();
  Flush();
  Put("c", "1", true);
  std::filesystem::remove_all(copy_);
  Copy(path_, copy_);
  DropLinks(copy_);
  Flush();
  Put("d", "1", true);
  Close();
  Replace(copy_, path_);
  ExpectRefused(kOlder);
}

// One that was opened before, and where the WAL has a directory of its own: the
// markers are those of now.
TEST_F(RestoreTest, CopyOfAnOpenDatabaseIsRefusedWithAWalDirectory) {
  options_.wal_dir = directory_.File("waldir");
  PutOnce("z", "1");
  Restart();
  CopyWhileOpen();
  Flush();
  Put("c", "1", true);
  Close();
  Replace(copy_, path_);
  ExpectRefused(kOlder);
}

// RocksDB does not replay an archive.
TEST_F(RestoreTest, CopyOfAnOpenDatabaseIsRefusedWhenItsWalIsArchived) {
  options_.WAL_ttl_seconds = 1000;
  CopyWhileOpen();
  DropLinks(copy_);
  Flush();
  Put("c", "1", true);
  Close();
  std::filesystem::create_directory(copy_ + "/archive");
  Replace(copy_, path_);
  ExpectRefused(kOlder);
}

TEST_F(RestoreTest, CopyOfAnOpenDatabaseIsOpenedWhileItsWalIsThere) {
  CopyWhileOpen();
  DropLinks(copy_);
  Put("c", "1", true);
  Put("a", "2", true);
  Close();
  Replace(copy_, path_);
  ExpectKeys("a=2 b=1 c=1 ");
}

// A MANIFEST of before the file went, and the rest of afterwards.
TEST_F(RestoreTest, CopyOfAnOpenDatabaseMayNotBeOfTwoMoments) {
  CopyWhileOpen();
  Flush();
  Put("c", "1", true);
  std::filesystem::copy_file(path_ + "/ALPHEUS", copy_ + "/ALPHEUS",
                             std::filesystem::copy_options::overwrite_existing);
  DropLinks(copy_);
  Close();
  Replace(copy_, path_);
  ExpectRefused("without the plugin");
}

TEST_F(RestoreTest, CopyOfTheOpenLogIsRefusedWhenItsWalIsGone) {
  CopyWhileOpen();
  const std::string older = directory_.File("older");
  std::filesystem::copy(wal_options_.log.path, older);
  Flush();
  Put("c", "1", true);
  Close();
  std::filesystem::rename(older, wal_options_.log.path);
  DropLinks(path_);
  ExpectRefused("the log is an older copy");
}

// DV4: there is no room for a generation before the file goes.
TEST_F(RestoreTest, CopyOfADatabaseWithAFullRingIsRefused) {
  wal_options_.create_bytes = 1 << 20;
  wal_options_.stall_ms = 0;
  Restart();
  CopyWhileOpen();
  DropLinks(copy_);
  // Records smaller than what says the generation.
  FillRing("v");
  EXPECT_FALSE((*fs().Store())->HasRoomForHome());
  // RocksDB flushes by itself then.
  ASSERT_OK(db_->ContinueBackgroundWork());
  rocksdb::WriteOptions sync;
  sync.sync = true;
  while (!db_->Put(sync, "c", "1").ok()) std::this_thread::yield();
  Close();
  EXPECT_EQ(LogWalFiles().size(), 1U);
  EXPECT_GT((*fs().Store())->vouch().generation, 1U);
  Replace(copy_, path_);
  ExpectRefused(kOlder);
}

// DV4: room in the ring comes first.
TEST_F(RestoreTest, WalFileGoesWhereTheDirectoryCannotVouch) {
  CopyWhileOpen();
  const std::vector<std::string> before = LogWalFiles();
  std::filesystem::create_directories(path_ + "/ALPHEUS.tmp/full");
  Flush();
  Put("c", "1", true);
  EXPECT_NE(LogWalFiles(), before);
  EXPECT_EQ(LogWalFiles().size(), 1U);
  Close();
  std::filesystem::remove_all(path_ + "/ALPHEUS.tmp");
  ExpectKeys("a=1 b=1 c=1 ");
}

// Markers of what the log has are put again.
TEST_F(RestoreTest, CopyOfBothWithoutMarkersIsOpened) {
  PutOnce("a", "1");
  PutOnce("b", "1");
  DropLinks(path_);
  ExpectKeys("a=1 b=1 ");
}

// Nothing in the directory names what was lost.
TEST_F(RestoreTest, CopyWithoutMarkersAndWithoutItsLogIsRefused) {
  PutOnce("a", "1");
  std::filesystem::remove(wal_options_.log.path);
  DropLinks(path_);
  wal_options_.adopt = true;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("the log is an older copy"));
  wal_options_.adopt = false;
  ExpectKeys("", &WalOptions::keep_wal);
}

// DV5.
TEST_F(RestoreTest, VouchOfAnotherDatabaseIsRefused) {
  PutOnce("a", "1");
  PutOnce("b", "1");
  const std::string first = path_;
  const std::string first_log = wal_options_.log.path;
  path_ = directory_.File("other");
  wal_options_.log.path = directory_.File("otherwal");
  PutOnce("a", "2");
  PutOnce("z", "2");
  // Each has the tables of the other one, and its own file.
  std::filesystem::rename(path_, copy_);
  std::filesystem::rename(first, path_);
  std::filesystem::rename(copy_, first);
  std::filesystem::rename(path_ + "/ALPHEUS", copy_);
  std::filesystem::rename(first + "/ALPHEUS", path_ + "/ALPHEUS");
  std::filesystem::rename(copy_, first + "/ALPHEUS");
  ExpectRefused("came from another database");
  path_ = first;
  wal_options_.log.path = first_log;
  ExpectRefused("came from another database");
}

// No step that fails leaves a file that vouches.
TEST_F(RestoreTest, IdentityThatCannotBeReplacedIsToldOf) {
  PutOnce("a", "1");
  Restart();
  Open();
  const std::string made = path_ + "/000000.dbtmp";
  const std::string identity = path_ + "/IDENTITY";
  const auto rename = [&] {
    return fs().RenameFile(made, identity, rocksdb::IOOptions(), nullptr).ok();
  };
  EXPECT_FALSE(rename());  // there is none
  std::ofstream(made) << "another";
  EXPECT_TRUE(rename());
  std::ofstream(made) << "third";
  std::filesystem::create_directories(path_ + "/ALPHEUS.tmp/full");
  EXPECT_FALSE(rename());
  EXPECT_TRUE(std::filesystem::exists(made));
  std::filesystem::remove_all(path_ + "/ALPHEUS.tmp");
  // One that can't be read.
  std::filesystem::remove(made);
  std::filesystem::remove(identity);
  std::filesystem::create_directory(made);
  EXPECT_FALSE(rename());
  Close();
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("IDENTITY"));
  std::filesystem::remove(identity);
  ExpectKeys("a=1 ");
}

TEST_F(RestoreTest, FollowerRefusesTheVouchOfAnotherDatabase) {
  PutOnce("a", "1");
  Close();
  fs_.reset();
  env_.reset();
  std::ofstream(path_ + "/IDENTITY") << "another";
  testing::Instance follower(wal_options_, options_);
  EXPECT_THAT(follower.OpenReadOnly(path_).ToString(),
              HasSubstr("is not the database whose WAL"));
}

TEST_F(RestoreTest, DatabaseMayGetANewIdentity) {
  PutOnce("a", "1");
  const std::string identity = path_ + "/IDENTITY";
  const std::string before =
      *DatabaseIdentity(*rocksdb::FileSystem::Default(), path_);
  for (int i = 0; i < 2; ++i) {
    std::filesystem::remove(identity);
    PutOnce("b", "1");
    const auto vouch =
        ReadDirectoryVouch(*rocksdb::FileSystem::Default(), path_);
    ASSERT_TRUE(vouch.ok() && *vouch);
    EXPECT_FALSE((*vouch)->identity.empty());
    EXPECT_NE((*vouch)->identity, before);
  }
  // One in place of another.
  Restart();
  Open();
  std::ofstream(path_ + "/000000.dbtmp") << "third";
  ASSERT_TRUE(fs().RenameFile(path_ + "/000000.dbtmp", identity,
                              rocksdb::IOOptions(), nullptr)
                  .ok());
  Reopen();
  Close();
  // A crash while RocksDB replaces it.
  DirectoryVouch vouch =
      **ReadDirectoryVouch(*rocksdb::FileSystem::Default(), path_);
  vouch.identity.clear();
  ASSERT_TRUE(
      WriteDirectoryVouch(*rocksdb::FileSystem::Default(), path_, vouch).ok());
  std::ofstream(identity) << "another";
  ExpectKeys("a=1 b=1 ");
}

TEST_F(RestoreTest, OlderCopyOfTheLogIsRefused) {
  PutOnce("a", "1");
  std::filesystem::copy(wal_options_.log.path, directory_.File("copy"));
  PutOnce("a", "2");
  PutOnce("b", "1");
  const std::string newer = directory_.File("newer");
  std::filesystem::rename(wal_options_.log.path, newer);
  std::filesystem::copy(directory_.File("copy"), wal_options_.log.path);
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("the log is an older copy"));
  // The newer one is put back.
  std::filesystem::rename(newer, wal_options_.log.path);
  ExpectKeys("a=2 b=1 ");
}

TEST_F(RestoreTest, LostLogIsLeftBehindByItsWord) {
  PutOnce("a", "1");
  PutOnce("b", "1");
  for (bool WalOptions::* word :
       {&WalOptions::drop_wal, &WalOptions::keep_wal}) {
    std::filesystem::remove(wal_options_.log.path);
    Restart();
    EXPECT_THAT(TryOpen().ToString(),
                HasSubstr("a log that never had a WAL file"));
    wal_options_.adopt = true;
    Restart();
    const std::string refused = TryOpen().ToString();
    EXPECT_THAT(refused, HasSubstr("its marker is here"));
    EXPECT_THAT(refused, HasSubstr("keep_wal=true"));
    wal_options_.adopt = false;
    // The flushed keys are there.
    wal_options_.*word = true;
    Restart();
    Open();
    EXPECT_EQ(Get("a"), "1");
    Close();
    wal_options_.*word = false;
    PutOnce("b", "1");
  }
}

TEST_F(RestoreTest, DatabaseOfAnotherLogIsRefused) {
  PutOnce("a", "1");
  const std::string first = path_;
  const std::string log = wal_options_.log.path;
  path_ = directory_.File("other");
  wal_options_.log.path = directory_.File("otherwal");
  PutOnce("b", "1");
  Close();
  std::filesystem::rename(first, directory_.File("away"));
  std::filesystem::rename(path_, first);
  path_ = first;
  wal_options_.log.path = log;
  ExpectRefused("in another log");
  std::filesystem::remove_all(path_);
  std::filesystem::rename(directory_.File("away"), path_);
  ExpectKeys("a=1 ");
}

// DV6: no word gives the WAL to a directory beside the database, and the
// message offers none. Only a directory that says the same as the log is the
// database, moved.
TEST_F(RestoreTest, NothingBesideTheDatabaseGetsItsWal) {
  MakeBackup();
  Close();
  const std::string older = directory_.File("older");
  Copy(path_, older);
  PutOnce("c", "1");
  const std::string database = path_;
  const std::string log = wal_options_.log.path;
  const std::string others = directory_.File("others");
  path_ = others;
  wal_options_.log.path = directory_.File("otherwal");
  PutOnce("o", "1");
  wal_options_.log.path = log;
  path_ = directory_.File("restored");
  RestoreWithoutThePlugin();
  for (const std::string& beside :
       {older, path_, others, directory_.File("empty")}) {
    path_ = beside;
    ExpectRefusedWithAnyWord();
  }
  path_ = database;
  Restart();
  Open();
  EXPECT_EQ(Keys(), "a=1 b=1 c=1 ");
  Close();
  // It is moved, and looks the same from all that stays.
  const std::string moved = directory_.File("moved");
  std::filesystem::rename(database, moved);
  for (const std::string& beside : {older, others}) {
    path_ = beside;
    ExpectRefusedWithAnyWord();
  }
  path_ = moved;
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr("adopt=true"));
  ExpectKeys("a=1 b=1 c=1 ", &WalOptions::adopt);
}

// A database that was opened with the log of another one, which has the same
// path on another machine.
TEST_F(RestoreTest, WalOfAnotherDatabaseIsNotOfferedToBeDropped) {
  PutOnce("a", "1");
  const std::string log = wal_options_.log.path;
  std::filesystem::rename(path_, directory_.File("away"));
  wal_options_.log.path = directory_.File("otherwal");
  PutOnce("b", "1");
  wal_options_.log.path = log;
  Restart();
  const std::string refused = TryOpen().ToString();
  EXPECT_THAT(refused, HasSubstr("Name the right log"));
  EXPECT_THAT(refused, Not(HasSubstr("_wal=true")));
}

// Nothing could be mixed.
TEST_F(RestoreTest, RestoreBelowAnEmptyLogNeedsNoWord) {
  MakeBackup();
  Restart();
  ASSERT_OK(rocksdb::DestroyDB(path_, options_));
  EXPECT_FALSE(std::filesystem::exists(path_));
  RestoreWithoutThePlugin();
  ExpectKeys("a=1 b=1 ");
}

TEST_F(RestoreTest, DroppingDoesNothingWhereTheyVouch) {
  PutOnce("a", "1");
  wal_options_.drop_wal = true;
  PutOnce("b", "1");
  PutOnce("a", "2");
  wal_options_.drop_wal = false;
  ExpectKeys("a=2 b=1 ");
}

TEST_F(RestoreTest, NewDatabaseDropsTheOldWalByItsWord) {
  PutOnce("a", "1");
  std::filesystem::remove_all(path_);
  for (const bool adopts : {false, true}) {
    wal_options_.adopt = adopts;
    Restart();
    const std::string refused = TryOpen().ToString();
    EXPECT_THAT(refused, HasSubstr("mounted?"));
    EXPECT_THAT(refused, HasSubstr("drop_wal=true"));
  }
  wal_options_.adopt = false;
  ExpectKeys("", &WalOptions::drop_wal);
}

TEST_F(RestoreTest, CloneOfBothIsOpened) {
  PutOnce("a", "1");
  PutOnce("a", "2");
  Copy(path_, directory_.File("clone"));
  std::filesystem::copy(wal_options_.log.path, directory_.File("clonewal"));
  ExpectKeys("a=2 ");
  path_ = directory_.File("clone");
  wal_options_.log.path = directory_.File("clonewal");
  ExpectKeys("a=2 ", &WalOptions::adopt);
}

// An opening for writing makes it the log's.
TEST_F(RestoreTest, CloneThatIsOnlyReadIsToBeAdoptedFirst) {
  PutOnce("a", "1");
  Close();
  Copy(path_, copy_);
  const std::string log = wal_options_.log.path + "2";
  std::filesystem::copy(wal_options_.log.path, log);
  // The one that it was cloned from may be gone, or go on.
  PutOnce("b", "1");
  wal_options_.log.path = log;
  for (const bool has_markers : {true, false}) {
    if (!has_markers) DropLinks(copy_);
    Restart();
    const std::string refused = TryRead(copy_).ToString();
    EXPECT_THAT(refused, HasSubstr("once for writing with adopt=true"));
    EXPECT_THAT(refused, Not(HasSubstr("keep_wal")));
  }
  // The word alone changes nothing for who reads: RocksDB asks for its marker.
  Close();
  path_ = copy_;
  wal_options_.adopt = true;
  Restart();
  Open();
  Close();
  wal_options_.adopt = false;
  Restart();
  const Status read = TryRead(copy_);
  ASSERT_TRUE(read.ok()) << read.ToString();
  EXPECT_EQ(Keys(), "a=1 ");
}

TEST_F(RestoreTest, ReadingACloneWithItsWordSaysThatItIsForWriting) {
  PutOnce("a", "1");
  Close();
  Copy(path_, copy_);
  wal_options_.adopt = true;
  Restart();
  const std::string refused = TryRead(copy_).ToString();
  EXPECT_THAT(refused, HasSubstr("once for writing with adopt=true"));
  EXPECT_THAT(refused, Not(HasSubstr("keep_wal")));
}

// ldb lists them before it opens a database.
TEST_F(RestoreTest, ColumnFamiliesAreListedBeforeAnOpeningWithAWord) {
  MakeBackup();
  PutOnce("c", "1");
  RestoreWithoutThePlugin();
  const auto list = [&] {
    Restart();
    std::vector<std::string> names;
    return rocksdb::DB::ListColumnFamilies(options_, path_, &names).ToString();
  };
  EXPECT_THAT(list(), HasSubstr(kReplaced));
  for (bool WalOptions::* word :
       {&WalOptions::drop_wal, &WalOptions::keep_wal, &WalOptions::adopt}) {
    wal_options_.*word = true;
    EXPECT_EQ(list(), "OK");
    wal_options_.*word = false;
  }
}

// Nothing of it is in the log.
TEST_F(RestoreTest, CheckpointIsReadBesideTheLog) {
  PutOnce("a", "1");
  Restart();
  Open();
  MakeCheckpoint(copy_);
  Put("b", "1", true);
  Close();
  Restart();
  const Status read = TryRead(copy_);
  ASSERT_TRUE(read.ok()) << read.ToString();
  EXPECT_EQ(Keys(), "a=1 ");
  Close();
  std::filesystem::create_directories(copy_ + "/ALPHEUS/full");
  EXPECT_THAT(TryRead(copy_).ToString(), HasSubstr("ALPHEUS"));
}

TEST_F(RestoreTest, CloneIsNotTheDatabaseItWasClonedFrom) {
  PutOnce("a", "1");
  const std::string clone = directory_.File("clone");
  Copy(path_, clone);
  std::filesystem::copy(wal_options_.log.path, directory_.File("clonewal"));
  const std::string path = path_;
  const std::string log = wal_options_.log.path;
  path_ = clone;
  wal_options_.log.path = directory_.File("clonewal");
  wal_options_.adopt = true;
  PutOnce("b", "1");
  wal_options_.adopt = false;
  path_ = path;
  wal_options_.log.path = log;
  PutOnce("c", "1");
  Replace(clone, path_);
  ExpectRefused("in another log");
}

// GetUpdatesSince must not show another state.
TEST_F(RestoreTest, ArchiveIsDroppedWithTheWal) {
  options_.WAL_ttl_seconds = 10'000;
  MakeBackup();
  PutOnce("c", "1");
  PutOnce("d", "1");
  Restart();
  EXPECT_FALSE(LogWalFiles("archive").empty());
  fs_.reset();
  env_.reset();
  RestoreWithoutThePlugin();
  wal_options_.drop_wal = true;
  Restart();
  Open();
  EXPECT_EQ(Keys(), "a=1 b=1 ");
  for (const std::string& name : LogWalFiles("archive")) {
    EXPECT_GT(name, "000009.log");
  }
}

// docs/use/rocksdb.md#back-and-another-size.
TEST_F(RestoreTest, DatabaseGoesBackAndComesAgain) {
  PutOnce("a", "1");
  Restart();
  Open();
  ASSERT_OK(db_->Flush(rocksdb::FlushOptions()));
  Close();
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.is_symlink()) std::filesystem::remove(entry.path());
  }
  options_.env = rocksdb::Env::Default();
  Open();
  Put("a", "2", true);
  Put("b", "1", true);
  Close();
  ExpectRefused("the tables were replaced");
  ExpectKeys("a=2 b=1 ", &WalOptions::drop_wal);
}

TEST_F(RestoreTest, WalDirectoryThatIsGoneIsNotTheDatabase) {
  options_.wal_dir = directory_.File("waldir");
  PutOnce("a", "1");
  std::filesystem::remove_all(options_.wal_dir);
  std::filesystem::create_directory(options_.wal_dir);
  Restart();
  Open();
  EXPECT_EQ(Keys(), "a=1 ");
}

TEST_F(RestoreTest, RestoreWithAWalDirectoryIsRefused) {
  options_.wal_dir = directory_.File("waldir");
  MakeBackup();
  PutOnce("c", "1");
  ASSERT_OK(Engine(rocksdb::Env::Default())
                ->RestoreDBFromLatestBackup(path_, options_.wal_dir));
  Restart();
  EXPECT_THAT(TryOpen().ToString(), HasSubstr(kReplaced));
  wal_options_.drop_wal = true;
  Restart();
  Open();
  EXPECT_EQ(Keys(), "a=1 b=1 ");
}

TEST_F(RestoreTest, FollowerRefusesAReplacedDirectory) {
  MakeBackup();
  PutOnce("c", "1");
  fs_.reset();
  env_.reset();
  {
    testing::Instance follower(wal_options_, options_);
    const Status opened = follower.OpenReadOnly(path_);
    ASSERT_TRUE(opened.ok()) << opened.ToString();
    EXPECT_EQ(follower.Get("c"), "1");
  }
  RestoreWithoutThePlugin();
  testing::Instance follower(wal_options_, options_);
  EXPECT_THAT(follower.OpenReadOnly(path_).ToString(),
              HasSubstr("is not the database whose WAL the log has"));
}

// A directory of a version that did not vouch.
TEST_F(RestoreTest, UnvouchedDatabaseIsOpenedAndVouchedFor) {
  MakeBackup();
  PutOnce("c", "1");
  MakeUnvouched();
  Restart();
  EXPECT_EQ((*fs().Store())->vouch(), WalVouch());
  ExpectKeys("a=1 b=1 c=1 ");
  EXPECT_FALSE((*fs().Store())->vouch().id.empty());
  PutOnce("d", "1");
  RestoreWithoutThePlugin();
  ExpectRefused(kReplaced);
}

TEST_F(RestoreTest, UnvouchedDatabaseThatWasReplacedIsRefused) {
  MakeBackup();
  PutOnce("c", "1");
  MakeUnvouched();
  RestoreWithoutThePlugin();
  ExpectRefused(kReplaced);
  ExpectKeys("a=1 b=1 ", &WalOptions::drop_wal);
}

TEST_F(RestoreTest, UnvouchedCopyOfALogIsAnOlderOne) {
  PutOnce("a", "1");
  const std::string vouched = path_ + "/ALPHEUS";
  const std::string kept = directory_.File("kept");
  std::filesystem::copy(vouched, kept);
  MakeUnvouched();
  std::filesystem::copy(kept, vouched);
  ExpectRefused("the log is an older copy");
  ExpectKeys("a=1 ", &WalOptions::keep_wal);
}

// DV2: states that crashes between the steps of an opening leave.
TEST_F(RestoreTest, CrashBetweenDirectoryAndLogIsOpened) {
  PutOnce("a", "1");
  Restart();
  const WalVouch log = (*fs().Store())->vouch();
  DirectoryVouch vouch;
  vouch.log = {log.id, log.generation + 1};
  vouch.log_was = log;
  ASSERT_TRUE(
      WriteDirectoryVouch(*rocksdb::FileSystem::Default(), path_, vouch).ok());
  ExpectKeys("a=1 ");
}

TEST_F(RestoreTest, CrashBeforeCurrentIsReplacedIsOpened) {
  PutOnce("a", "1");
  rocksdb::FileSystem& base = *rocksdb::FileSystem::Default();
  DirectoryVouch vouch = **ReadDirectoryVouch(base, path_);
  vouch.manifest_was = vouch.manifest.name;
  vouch.manifest = {"MANIFEST-000999", 0};
  ASSERT_TRUE(WriteDirectoryVouch(base, path_, vouch).ok());
  ExpectKeys("a=1 ");
}

TEST_F(RestoreTest, DatabaseOfAFullRingStaysVouchedFor) {
  wal_options_.create_bytes = 1 << 20;
  Restart();
  Open();
  const std::string value(1000, 'v');
  const int written = FillRing(value);
  for (int i = 0; i < 3; ++i) {
    Crash();
    Open();
    EXPECT_EQ(Get(std::to_string(written - 1)), value);
  }
}

TEST_F(RestoreTest, VouchThatCannotBeReadIsNone) {
  PutOnce("a", "1");
  std::ofstream(path_ + "/ALPHEUS") << "alpheus vouch 1\nlog";
  ExpectRefused(kReplaced);
  ExpectKeys("a=1 ", &WalOptions::keep_wal);
}

TEST_F(RestoreTest, RepairIsVouchedFor) {
  PutOnce("a", "1");
  std::filesystem::remove(path_ + "/CURRENT");
  Restart();
  ASSERT_OK(rocksdb::RepairDB(path_, options_));
  ExpectKeys("a=1 ");
}

}  // namespace
}  // namespace alpheus::wal
