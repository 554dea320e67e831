// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/wal_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "api/rocksdb/store/wal_io_status.h"
#include "rocksdb/convenience.h"
#include "tests/api/rocksdb/fs/plugin_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class WalFileSystemTest : public testing::PluginFixture {
 protected:
  WalFileSystemTest() {
    std::filesystem::create_directories(path_ + "/archive");
  }

  std::string At(const std::string& name) const { return path_ + "/" + name; }

  IOStatus TryMake(const std::string& path, const std::string& text) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    IOStatus made = fs().NewWritableFile(path, FileOptions(), &file, nullptr);
    if (made.ok()) made = file->Append(text, IOOptions(), nullptr);
    if (made.ok()) made = file->Sync(IOOptions(), nullptr);
    if (made.ok()) made = file->Close(IOOptions(), nullptr);
    return made;
  }
  void Make(const std::string& path, const std::string& text) {
    const IOStatus made = TryMake(path, text);
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  // As RocksDB reads a WAL: piece by piece, until one is short.
  std::string Content(const std::string& path) {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    IOStatus status =
        fs().NewSequentialFile(path, FileOptions(), &file, nullptr);
    std::string text;
    while (status.ok()) {
      char scratch[5];
      Slice piece;
      status =
          file->Read(sizeof(scratch), IOOptions(), &piece, scratch, nullptr);
      EXPECT_EQ(piece.data(), scratch);
      text.append(piece.data(), piece.size());
      if (piece.size() < sizeof(scratch)) return text;
    }
    return status.ToString();
  }
  std::vector<std::string> Children(const std::string& directory) {
    std::vector<std::string> names;
    const IOStatus listed =
        fs().GetChildren(directory, IOOptions(), &names, nullptr);
    EXPECT_TRUE(listed.ok()) << listed.ToString();
    return names;
  }
  bool Exists(const std::string& path) {
    const IOStatus status = fs().FileExists(path, IOOptions(), nullptr);
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    return status.ok();
  }
  IOStatus Rename(const std::string& from, const std::string& to) {
    return fs().RenameFile(from, to, IOOptions(), nullptr);
  }
  IOStatus Delete(const std::string& path) {
    return fs().DeleteFile(path, IOOptions(), nullptr);
  }
  // Locks and unlocks: what opening a database does first.
  IOStatus Lock(const std::string& directory) {
    rocksdb::FileLock* lock = nullptr;
    IOStatus locked =
        fs().LockFile(directory + "/LOCK", IOOptions(), &lock, nullptr);
    if (!locked.ok()) return locked;
    return fs().UnlockFile(lock, IOOptions(), nullptr);
  }
};

TEST_F(WalFileSystemTest, WalFilesAreInTheLogAndOthersAreNot) {
  Make(At("000004.log"), "four");
  Make(At("000005.sst"), "table");
  Make(At("x.log"), "not a WAL");
  EXPECT_THAT(LogWalFiles(), ElementsAre("000004.log"));
  EXPECT_EQ(Content(At("000004.log")), "four");
  EXPECT_EQ(Content(At("000005.sst")), "table");
  EXPECT_EQ(Content(At("x.log")), "not a WAL");
  EXPECT_TRUE(std::filesystem::is_regular_file(At("000005.sst")));
  EXPECT_THAT(PlainWalFiles(path_), ElementsAre("x.log"));
}

TEST_F(WalFileSystemTest, FileIsDescribedRight) {
  Make(At("000004.log"), "four");
  EXPECT_TRUE(Exists(At("000004.log")));
  EXPECT_TRUE(Exists(path_ + "//./000004.log"));
  EXPECT_FALSE(Exists(At("000005.log")));
  uint64_t number = 0;
  ASSERT_TRUE(
      fs().GetFileSize(At("000004.log"), IOOptions(), &number, nullptr).ok());
  EXPECT_EQ(number, 4u);
  ASSERT_TRUE(fs().GetFileModificationTime(At("000004.log"), IOOptions(),
                                           &number, nullptr)
                  .ok());
  EXPECT_GT(number, 1'600'000'000u);
  ASSERT_TRUE(
      fs().NumFileLinks(At("000004.log"), IOOptions(), &number, nullptr).ok());
  EXPECT_EQ(number, 1u);
  bool answer = true;
  ASSERT_TRUE(
      fs().IsDirectory(At("000004.log"), IOOptions(), &answer, nullptr).ok());
  EXPECT_FALSE(answer);
  Make(At("000005.log"), "four");
  ASSERT_TRUE(fs().AreFilesSame(At("000004.log"), At("000005.log"), IOOptions(),
                                &answer, nullptr)
                  .ok());
  EXPECT_FALSE(answer);
  ASSERT_TRUE(fs().AreFilesSame(At("000004.log"), At("000004.log"), IOOptions(),
                                &answer, nullptr)
                  .ok());
  EXPECT_TRUE(answer);
}

TEST_F(WalFileSystemTest, MissingFileIsNotFound) {
  Make(At("000004.log"), "four");
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  EXPECT_TRUE(
      fs().NewSequentialFile(At("000009.log"), FileOptions(), &file, nullptr)
          .IsPathNotFound());
  EXPECT_TRUE(Delete(At("000009.log")).IsPathNotFound());
  EXPECT_TRUE(Rename(At("000009.log"), At("000010.log")).IsPathNotFound());
}

TEST_F(WalFileSystemTest, ListingHasEachFileOnce) {
  Make(At("000004.log"), "four");
  Make(At("000005.sst"), "table");
  ASSERT_TRUE(Rename(At("000004.log"), At("archive/000004.log")).ok());
  Make(At("000006.log"), "");
  std::vector<std::string> names = Children(path_);
  EXPECT_EQ(std::ranges::count(names, "000006.log"), 1);
  EXPECT_THAT(names, Contains("000005.sst"));
  EXPECT_THAT(names, Not(Contains("000004.log")));
  EXPECT_THAT(Children(At("archive")), ElementsAre("000004.log"));
  std::vector<rocksdb::FileAttributes> attributes;
  ASSERT_TRUE(fs().GetChildrenFileAttributes(At("archive"), IOOptions(),
                                             &attributes, nullptr)
                  .ok());
  ASSERT_EQ(attributes.size(), 1u);
  EXPECT_EQ(attributes[0].name, "000004.log");
  EXPECT_EQ(attributes[0].size_bytes, 4u);
}

TEST_F(WalFileSystemTest, ReadersSeeWhatIsWrittenMeanwhile) {
  std::unique_ptr<rocksdb::FSWritableFile> writer;
  ASSERT_TRUE(
      fs().NewWritableFile(At("000004.log"), FileOptions(), &writer, nullptr)
          .ok());
  std::unique_ptr<rocksdb::FSSequentialFile> reader;
  ASSERT_TRUE(
      fs().NewSequentialFile(At("000004.log"), FileOptions(), &reader, nullptr)
          .ok());
  char scratch[100];
  Slice piece;
  ASSERT_TRUE(reader->Read(100, IOOptions(), &piece, scratch, nullptr).ok());
  EXPECT_EQ(piece.size(), 0u);
  ASSERT_TRUE(writer->Append("abcdef", IOOptions(), nullptr).ok());
  EXPECT_EQ(writer->GetFileSize(IOOptions(), nullptr), 6u);
  ASSERT_TRUE(reader->Skip(1).ok());
  ASSERT_TRUE(reader->Read(100, IOOptions(), &piece, scratch, nullptr).ok());
  EXPECT_EQ(piece.ToString(), "bcdef");
  ASSERT_TRUE(
      reader->PositionedRead(2, 3, IOOptions(), &piece, scratch, nullptr).ok());
  EXPECT_EQ(piece.ToString(), "cde");
  std::unique_ptr<rocksdb::FSRandomAccessFile> random;
  ASSERT_TRUE(fs().NewRandomAccessFile(At("000004.log"), FileOptions(), &random,
                                       nullptr)
                  .ok());
  ASSERT_TRUE(random->Read(4, 9, IOOptions(), &piece, scratch, nullptr).ok());
  EXPECT_EQ(piece.ToString(), "ef");
}

// Each of RocksDB's calls for it makes the appended bytes durable.
TEST_F(WalFileSystemTest, EverySyncForces) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(
      fs().NewWritableFile(At("000004.log"), FileOptions(), &file, nullptr)
          .ok());
  EXPECT_TRUE(file->IsSyncThreadSafe());
  const Log& log = (*fs().Store())->log();
  const auto appended_is_durable_after = [&](auto&& sync) {
    // The first one after a sync may be durable at once, the second is not.
    EXPECT_TRUE(file->Append("x", IOOptions(), nullptr).ok());
    EXPECT_TRUE(file->Append("y", IOOptions(), nullptr).ok());
    EXPECT_TRUE(file->Flush(IOOptions(), nullptr).ok());
    EXPECT_GE(log.Exposed(), 1u);
    const IOStatus synced = sync();
    EXPECT_TRUE(synced.ok()) << synced.ToString();
    return log.Exposed() == 0;
  };
  EXPECT_TRUE(appended_is_durable_after(
      [&] { return file->Sync(IOOptions(), nullptr); }));
  EXPECT_TRUE(appended_is_durable_after(
      [&] { return file->Fsync(IOOptions(), nullptr); }));
  EXPECT_TRUE(appended_is_durable_after(
      [&] { return file->RangeSync(0, 1, IOOptions(), nullptr); }));
  std::unique_ptr<rocksdb::FSDirectory> directory;
  ASSERT_TRUE(fs().NewDirectory(path_, IOOptions(), &directory, nullptr).ok());
  EXPECT_TRUE(appended_is_durable_after(
      [&] { return directory->Fsync(IOOptions(), nullptr); }));
  EXPECT_TRUE(appended_is_durable_after([&] {
    return directory->FsyncWithDirOptions(IOOptions(), nullptr,
                                          rocksdb::DirFsyncOptions());
  }));
}

TEST_F(WalFileSystemTest, ReopenedFileGoesOn) {
  Make(At("000004.log"), "abc");
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(
      fs().ReopenWritableFile(At("000004.log"), FileOptions(), &file, nullptr)
          .ok());
  ASSERT_TRUE(file->Truncate(2, IOOptions(), nullptr).ok());
  ASSERT_TRUE(file->Append("x", IOOptions(), nullptr).ok());
  EXPECT_EQ(Content(At("000004.log")), "abx");
  ASSERT_TRUE(fs().Truncate(At("000004.log"), 1, IOOptions(), nullptr).ok());
  EXPECT_EQ(Content(At("000004.log")), "a");
  ASSERT_TRUE(
      fs().ReopenWritableFile(At("000005.log"), FileOptions(), &file, nullptr)
          .ok());
  EXPECT_THAT(LogWalFiles(), Contains("000005.log"));
}

TEST_F(WalFileSystemTest, ReusedFileIsANewOne) {
  Make(At("000004.log"), "four");
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(fs().ReuseWritableFile(At("000005.log"), At("000004.log"),
                                     FileOptions(), &file, nullptr)
                  .ok());
  EXPECT_THAT(LogWalFiles(), ElementsAre("000005.log"));
  EXPECT_EQ(Content(At("000005.log")), "");
}

// RocksDB gives a file such a name before it removes it in the background.
TEST_F(WalFileSystemTest, FileMayHaveAnotherNameBeforeItIsRemoved) {
  Make(At("000004.log"), "four");
  ASSERT_TRUE(Rename(At("000004.log"), At("000004.log.trash")).ok());
  EXPECT_EQ(Content(At("000004.log.trash")), "four");
  ASSERT_TRUE(Delete(At("000004.log.trash")).ok());
  EXPECT_THAT(LogWalFiles(), IsEmpty());
  EXPECT_FALSE(Exists(At("000004.log.trash")));
  EXPECT_TRUE(PlainWalFiles(path_).empty());
}

TEST_F(WalFileSystemTest, WhatALogCannotDoIsRefused) {
  Make(At("000004.log"), "four");
  EXPECT_TRUE(
      fs().LinkFile(At("000004.log"), At("000005.log"), IOOptions(), nullptr)
          .IsNotSupported());
  EXPECT_TRUE(
      Rename(At("000004.log"), directory_.File("000004.log")).IsNotSupported());
  EXPECT_TRUE(Rename(At("000004.log"), At("000004.txt")).IsNotSupported());
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  EXPECT_TRUE(
      fs().NewRandomRWFile(At("000004.log"), FileOptions(), &file, nullptr)
          .IsNotSupported());
  EXPECT_EQ(Content(At("000004.log")), "four");
}

// A checkpoint, a backup: what is copied out of the log is a file like others.
TEST_F(WalFileSystemTest, WalFileElsewhereIsAPlainFile) {
  Make(At("000004.log"), "four");
  const std::string other = directory_.File("checkpoint");
  std::filesystem::create_directory(other);
  Make(other + "/000004.log", "copy");
  EXPECT_THAT(PlainWalFiles(other), ElementsAre("000004.log"));
  EXPECT_THAT(LogWalFiles(), ElementsAre("000004.log"));
  EXPECT_EQ(Content(other + "/000004.log"), "copy");
  ASSERT_TRUE(Delete(other + "/000004.log").ok());
  EXPECT_EQ(Content(At("000004.log")), "four");
}

// Plain files are WAL files from before the plugin came.
TEST_F(WalFileSystemTest, PlainFilesThatWereThereStayReadable) {
  std::ofstream(At("000003.log")) << "plain";
  Make(At("000004.log"), "four");
  EXPECT_EQ(Content(At("000003.log")), "plain");
  EXPECT_THAT(Children(path_), Contains("000003.log"));
  ASSERT_TRUE(Rename(At("000003.log"), At("archive/000003.log")).ok());
  EXPECT_EQ(Content(At("archive/000003.log")), "plain");
  ASSERT_TRUE(Delete(At("archive/000003.log")).ok());
  EXPECT_FALSE(Exists(At("archive/000003.log")));
  std::ofstream(At("000005.log")) << "plain";
  Make(At("000005.log"), "five");
  EXPECT_EQ(Content(At("000005.log")), "five");
  EXPECT_TRUE(PlainWalFiles(path_).empty());
}

// A plain file that is renamed to a name of the log replaces that, as any
// other.
TEST_F(WalFileSystemTest, PlainFileReplacesOneOfTheLog) {
  Make(At("000004.log"), "four");
  std::ofstream(At("x.log.tmp")) << "restored";
  ASSERT_TRUE(Rename(At("x.log.tmp"), At("000004.log")).ok());
  EXPECT_EQ(Content(At("000004.log")), "restored");
  EXPECT_THAT(LogWalFiles(), IsEmpty());
  EXPECT_THAT(PlainWalFiles(path_), ElementsAre("000004.log"));
}

// WHK1.
TEST_F(WalFileSystemTest, LogServesOneDatabase) {
  ASSERT_TRUE(Lock(path_).ok());
  Make(At("000004.log"), "four");
  ASSERT_TRUE(Lock(path_).ok());
  const std::string other = directory_.File("other");
  std::filesystem::create_directory(other);
  const IOStatus refused = Lock(other);
  EXPECT_THAT(refused.ToString(),
              HasSubstr("this log is that of the database"));
  EXPECT_THAT(refused.ToString(), HasSubstr(path_));
  // It is not left locked.
  rocksdb::FileLock* lock = nullptr;
  ASSERT_TRUE(rocksdb::FileSystem::Default()
                  ->LockFile(other + "/LOCK", IOOptions(), &lock, nullptr)
                  .ok());
  ASSERT_TRUE(rocksdb::FileSystem::Default()
                  ->UnlockFile(lock, IOOptions(), nullptr)
                  .ok());
  Restart();
  EXPECT_FALSE(Lock(other).ok());
  EXPECT_TRUE(Lock(path_).ok());
}

TEST_F(WalFileSystemTest, MovedDatabaseIsAdoptedWhenAsked) {
  ASSERT_TRUE(Lock(path_).ok());
  Make(At("000004.log"), "four");
  const std::string moved = directory_.File("moved");
  std::filesystem::rename(path_, moved);
  Restart();
  EXPECT_FALSE(Lock(moved).ok());
  wal_options_.adopt = true;
  Restart();
  ASSERT_TRUE(Lock(moved).ok());
  EXPECT_EQ(Content(moved + "/000004.log"), "four");
  wal_options_.adopt = false;
  Restart();
  EXPECT_TRUE(Lock(moved).ok());
}

// WHK2: a log that was lost looks like one that is new.
TEST_F(WalFileSystemTest, NewLogServesAnOldDatabaseOnlyWhenAsked) {
  std::ofstream(At("CURRENT")) << "MANIFEST-000001\n";
  EXPECT_THAT(Lock(path_).ToString(),
              HasSubstr("a log that never had a WAL file"));
  wal_options_.adopt = true;
  Restart();
  EXPECT_TRUE(Lock(path_).ok());
}

// WHK2: CURRENT is made of a new database, or of one that is repaired, whose
// WAL may have been in another log.
TEST_F(WalFileSystemTest, OnlyANewDatabaseHasTheLogWithItsCurrent) {
  for (const std::string old :
       {"", "000007.log", "000008.sst", "000008.blob", "OPTIONS-000009"}) {
    wal_options_.log.path = directory_.File("log of " + old);
    Restart();
    const std::string database = directory_.File("database with " + old);
    std::filesystem::create_directory(database);
    if (!old.empty()) std::ofstream(database + "/" + old) << "old";
    std::ofstream(database + "/1.dbtmp") << "MANIFEST-000001\n";
    rocksdb::FileLock* lock = nullptr;
    ASSERT_TRUE(
        fs().LockFile(database + "/LOCK", IOOptions(), &lock, nullptr).ok());
    // The first one stays what it was, whoever is refused meanwhile.
    EXPECT_FALSE(Lock(path_).ok());
    ASSERT_TRUE(Rename(database + "/1.dbtmp", database + "/CURRENT").ok());
    ASSERT_TRUE(fs().UnlockFile(lock, IOOptions(), nullptr).ok());
    Restart();
    EXPECT_EQ(Lock(database).ok(), old.empty()) << old;
  }
}

// A crash in between leaves a claim, and never CURRENT without one.
TEST_F(WalFileSystemTest, ClaimIsDurableBeforeCurrentIsMade) {
  rocksdb::FileLock* lock = nullptr;
  ASSERT_TRUE(fs().LockFile(At("LOCK"), IOOptions(), &lock, nullptr).ok());
  const Log& log = (*fs().Store())->log();
  const Lsn before = log.next_lsn();
  EXPECT_FALSE(Rename(At("nowhere.dbtmp"), At("CURRENT")).ok());
  // The second record makes the log vouch for it.
  EXPECT_EQ(log.next_lsn() - before, 2u);
  EXPECT_EQ(log.durable_lsn() + 1, log.next_lsn());
  ASSERT_TRUE(fs().UnlockFile(lock, IOOptions(), nullptr).ok());
  Restart();
  std::ofstream(At("CURRENT")) << "MANIFEST-000001\n";
  EXPECT_TRUE(Lock(path_).ok());
}

TEST_F(WalFileSystemTest, DirectoryThatCannotBeListedClaimsNothing) {
  const std::string database = directory_.File("gone");
  std::filesystem::create_directory(database);
  rocksdb::FileLock* lock = nullptr;
  ASSERT_TRUE(
      fs().LockFile(database + "/LOCK", IOOptions(), &lock, nullptr).ok());
  std::filesystem::remove_all(database);
  const IOStatus renamed = Rename(At("1.dbtmp"), database + "/CURRENT");
  EXPECT_THAT(renamed.ToString(), HasSubstr(database + ": "));
  ASSERT_TRUE(fs().UnlockFile(lock, IOOptions(), nullptr).ok());
  EXPECT_TRUE(Lock(path_).ok());
}

TEST_F(WalFileSystemTest, DirectoryHasOneNameWhateverTheLink) {
  ASSERT_TRUE(Lock(path_).ok());
  Make(At("000004.log"), "four");
  const std::string link = directory_.File("link");
  std::filesystem::create_directory_symlink(path_, link);
  EXPECT_TRUE(Lock(link).ok());
  EXPECT_EQ(Content(link + "/000004.log"), "four");
}

TEST_F(WalFileSystemTest, OnlyTheNamedWalDirectoryIsKept) {
  const std::string wal = directory_.File("waldir");
  std::filesystem::create_directory(wal);
  wal_options_.wal_directory = wal;
  Restart();
  Make(At("000004.log"), "plain");
  EXPECT_THAT(PlainWalFiles(path_), ElementsAre("000004.log"));
  Make(wal + "/000004.log", "kept");
  EXPECT_THAT(LogWalFiles(), ElementsAre("000004.log"));
  EXPECT_TRUE(PlainWalFiles(wal).empty());
}

// WFS1.
TEST_F(WalFileSystemTest, MarkersFollowTheFiles) {
  const auto is_marked = [this](const std::string& name) {
    std::error_code error;
    return std::filesystem::is_symlink(At(name)) &&
           !std::filesystem::exists(At(name), error);
  };
  ASSERT_TRUE(Lock(path_).ok());
  Make(At("000004.log"), "four");
  EXPECT_TRUE(is_marked("000004.log"));
  ASSERT_TRUE(Rename(At("000004.log"), At("archive/000004.log")).ok());
  EXPECT_FALSE(is_marked("000004.log"));
  EXPECT_TRUE(is_marked("archive/000004.log"));
  ASSERT_TRUE(Delete(At("archive/000004.log")).ok());
  EXPECT_FALSE(is_marked("archive/000004.log"));
  // A crash came between.
  Make(At("000005.log"), "five");
  std::filesystem::remove(At("000005.log"));
  Restart();
  ASSERT_TRUE(Lock(path_).ok());
  EXPECT_TRUE(is_marked("000005.log"));
  // Nobody can tell which of the two is the right one.
  std::filesystem::remove(At("000005.log"));
  std::ofstream(At("000005.log")) << "plain";
  EXPECT_THAT(Lock(path_).ToString(), HasSubstr("move the plain one away"));
}

// WFS1. A marker of a file that a power cut took would be in the way for ever.
TEST_F(WalFileSystemTest, MarkerComesWhenItsFileIsDurable) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(
      fs().NewWritableFile(At("000004.log"), FileOptions(), &file, nullptr)
          .ok());
  const Log& log = (*fs().Store())->log();
  EXPECT_EQ(log.Exposed(), 0u);
  ASSERT_TRUE(Rename(At("000004.log"), At("archive/000004.log")).ok());
  EXPECT_EQ(log.Exposed(), 0u);
}

// WFS1: a crash would leave the marker and not the file, and the database could
// not be opened any more.
TEST_F(WalFileSystemTest, FileWithoutARecordHasNoMarker) {
  wal_options_.create_bytes = 128 << 10;
  wal_options_.log.path = directory_.File("small");
  Restart();
  ASSERT_TRUE(Lock(path_).ok());
  Make(At("000001.log"), std::string(7000, 'x'));
  while (TryMake(At("000002.log"), std::string(1000, 'x')).ok()) {
  }
  const auto store = *fs().Store();
  int number = 100;
  while ((*store->Create(std::to_string(number) + ".log"))->is_recorded()) {
    ++number;
  }
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ASSERT_TRUE(
      fs().NewWritableFile(At("000900.log"), FileOptions(), &file, nullptr)
          .ok());
  EXPECT_THAT(Children(path_), Contains("000900.log"));
  EXPECT_FALSE(std::filesystem::is_symlink(At("000900.log")));
  ASSERT_TRUE(Lock(path_).ok());
  EXPECT_FALSE(std::filesystem::is_symlink(At("000900.log")));
  // With its first data it has one, before anybody is told.
  for (int i = 1; i < 3; ++i) {
    ASSERT_TRUE(Delete(At("00000" + std::to_string(i) + ".log")).ok());
  }
  ASSERT_TRUE(file->Append("data", IOOptions(), nullptr).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(At("000900.log")));
  EXPECT_EQ(store->log().durable_lsn() + 1, store->log().next_lsn());
}

TEST_F(WalFileSystemTest, LogThatCannotBeOpenedFailsEveryCall) {
  wal_options_.create_bytes = 0;
  wal_options_.log.path = directory_.File("nowhere");
  Restart();
  std::vector<std::string> names;
  const std::vector<rocksdb::Status> failed = {
      fs().PrepareOptions(rocksdb::ConfigOptions()),
      TryMake(At("000004.log"), ""),
      Lock(path_),
      fs().GetChildren(path_, IOOptions(), &names, nullptr),
  };
  for (const rocksdb::Status& status : failed) {
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    // Some of RocksDB's calls take that for nothing to read.
    EXPECT_FALSE(status.IsPathNotFound());
  }
  EXPECT_TRUE(PlainWalFiles(path_).empty());
}

TEST_F(WalFileSystemTest, FileSystemIsFoundByItsUri) {
  rocksdb::Env* env = rocksdb::Env::Default();
  std::shared_ptr<rocksdb::Env> guard;
  rocksdb::ConfigOptions config;
  // docs/use/rocksdb.md asks for this: else nothing tells that the plugin is
  // not there.
  config.ignore_unsupported_options = false;
  EXPECT_FALSE(
      rocksdb::Env::CreateFromUri(config, "", "alpheuz:///x", &env, &guard)
          .ok());
  rocksdb::Status made = rocksdb::Env::CreateFromUri(
      config, "", "alpheus://" + directory_.File("uri") + "?create=1MiB", &env,
      &guard);
  ASSERT_TRUE(made.ok()) << made.ToString();
  EXPECT_TRUE(std::filesystem::exists(directory_.File("uri")));
  EXPECT_EQ(std::string(env->GetFileSystem()->Name()), "AlpheusWalFileSystem");
  guard.reset();
  made = rocksdb::Env::CreateFromUri(config, "", "alpheus:///x?nothing=1", &env,
                                     &guard);
  EXPECT_TRUE(made.IsInvalidArgument());
  EXPECT_THAT(made.ToString(), HasSubstr("no option is called"));
  made = rocksdb::Env::CreateFromUri(config, "", "alpheus:///nowhere/wal", &env,
                                     &guard);
  EXPECT_TRUE(made.IsIOError()) << made.ToString();
}

// The table of wal_io_status.h.
TEST(WalIoStatusTest, OutcomesKeepTheirMeaning) {
  EXPECT_TRUE(ToIoStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(ToIoStatus(absl::ResourceExhaustedError("x")).IsNoSpace());
  EXPECT_TRUE(ToIoStatus(absl::DataLossError("x")).IsCorruption());
  EXPECT_TRUE(ToIoStatus(absl::UnimplementedError("x")).IsNotSupported());
  EXPECT_TRUE(ToIoStatus(absl::InvalidArgumentError("x")).IsInvalidArgument());
  EXPECT_TRUE(ToIoStatus(absl::NotFoundError("x")).IsPathNotFound());
  EXPECT_TRUE(ToIoStatus(absl::FailedPreconditionError("x")).IsIOError());
  EXPECT_TRUE(ToIoStatus(absl::AbortedError("x")).IsIOFenced());
  for (const absl::Status& unknown :
       {absl::AbortedError("x"), absl::CancelledError("x"),
        absl::UnavailableError("x"), absl::DeadlineExceededError("x")}) {
    const IOStatus status = ToIoStatus(unknown);
    EXPECT_TRUE(status.IsIOError());
    EXPECT_FALSE(status.GetRetryable());
    EXPECT_TRUE(status.GetDataLoss());
    EXPECT_EQ(status.GetScope(), IOStatus::kIOErrorScopeFileSystem);
  }
  EXPECT_FALSE(ToIoStatus(absl::ResourceExhaustedError("x")).GetDataLoss());
}

}  // namespace
}  // namespace alpheus::wal
