// SPDX-License-Identifier: Apache-2.0
// Read-only and secondary instances that follow the log of another process,
// which goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "api/rocksdb/follow/wal_follower.h"
#include "api/rocksdb/follow/wal_following_file_system.h"
#include "api/rocksdb/store/wal_paths.h"
#include "rocksdb/convenience.h"
#include "rocksdb/db.h"
#include "tests/api/rocksdb/follow/following_instance.h"
#include "tests/api/rocksdb/fs/cluster_database_fixture.h"

namespace alpheus::wal {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Status;
using ::testing::AllOf;
using ::testing::Contains;
using testing::FollowingTest;
using ::testing::HasSubstr;
using testing::Instance;
using ::testing::Not;

TEST_F(FollowingTest, SecondaryFollowsALocalLog) {
  Open();
  PutShown("a", "1");
  Instance other(wal_options_, options_);
  const Status opened = other.OpenSecondary(path_, Own());
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("a"), "1");
  PutShown("b", "2");
  EXPECT_EQ(other.Get("b"), "NotFound: ");
  ASSERT_TRUE(other.db().TryCatchUpWithPrimary().ok());
  EXPECT_EQ(other.Get("b"), "2");
  ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
  PutShown("c", "3");
  ASSERT_TRUE(other.db().TryCatchUpWithPrimary().ok());
  for (const auto& [key, value] :
       {std::pair("a", "1"), std::pair("b", "2"), std::pair("c", "3")}) {
    EXPECT_EQ(other.Get(key), value);
  }
  Reopen();
  PutShown("d", "4");
  ASSERT_TRUE(other.db().TryCatchUpWithPrimary().ok());
  EXPECT_EQ(other.Get("d"), "4");
}

// RocksDB takes one that is not there for one that was flushed.
TEST_F(FollowingTest, WalThatIsNoMoreIsToBeTriedAgain) {
  Open();
  PutShown("a", "1");
  Instance other(wal_options_, options_);
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  const IOStatus opened =
      other.fs().NewSequentialFile(path_ + "/999999.log", {}, &file, nullptr);
  EXPECT_TRUE(opened.IsIOError()) << opened.ToString();
  EXPECT_FALSE(opened.IsPathNotFound());
  EXPECT_TRUE(opened.GetRetryable());
  EXPECT_TRUE(
      other.fs()
          .NewSequentialFile(path_ + "/archive/999999.log", {}, &file, nullptr)
          .IsPathNotFound());
}

TEST_F(FollowingTest, ReadOnlyInstanceReadsBesideItsWriter) {
  Open();
  PutShown("a", "1");
  Instance other(wal_options_, options_);
  const Status opened = other.OpenReadOnly(path_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("a"), "1");
  PutShown("b", "2");
  EXPECT_EQ(Get("b"), "2");
}

// More than the ring holds, between two looks.
TEST_F(FollowingTest, SecondaryThatWasOvertakenCatchesUp) {
  Open();
  PutShown("first", "1");
  Instance other(wal_options_, options_);
  ASSERT_TRUE(other.OpenSecondary(path_, Own()).ok());
  const std::string value(100'000, 'x');
  for (int i = 0; i < 400; ++i) {
    Put(std::to_string(i), value);
    if (i % 50 == 49) {
      ASSERT_TRUE(db_->Flush(rocksdb::FlushOptions()).ok());
    }
  }
  PutShown("last", "2");
  const Status caught = other.db().TryCatchUpWithPrimary();
  ASSERT_TRUE(caught.ok()) << caught.ToString();
  EXPECT_EQ(other.Get("first"), "1");
  EXPECT_EQ(other.Get("last"), "2");
  EXPECT_EQ(other.Get("399"), value);
  EXPECT_GE((*other.fs().Follower())->restarts(), 1);
}

// It was opened before there was a database.
TEST_F(FollowingTest, LogWithoutADatabaseIsFollowedToItsFirst) {
  ASSERT_TRUE(fs().PrepareOptions(rocksdb::ConfigOptions()).ok());
  Instance other(wal_options_, options_);
  EXPECT_FALSE(other.OpenReadOnly(path_).ok());
  Open();
  PutShown("a", "1");
  const Status opened = other.OpenReadOnly(path_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("a"), "1");
}

TEST_F(FollowingTest, NothingOfTheDatabaseIsChanged) {
  Open();
  PutShown("a", "1");
  Instance other(wal_options_, options_);
  const Status opened = other.OpenForWriting(path_);
  EXPECT_TRUE(opened.IsNotSupported()) << opened.ToString();
  EXPECT_THAT(opened.ToString(), HasSubstr("follow=true"));
  WalFollowingFileSystem& fs = other.fs();
  const std::string link = directory_.File("link");
  std::filesystem::create_symlink(path_, link);
  const std::string there = path_ + "/CURRENT";
  const std::string wal = path_ + "/" + LogWalFiles().front();
  const std::string elsewhere = directory_.File("elsewhere");
  std::unique_ptr<rocksdb::FSWritableFile> file;
  std::unique_ptr<rocksdb::FSRandomRWFile> both;
  std::shared_ptr<rocksdb::Logger> logger;
  rocksdb::FileLock* lock = nullptr;
  const std::vector<IOStatus> refused = {
      fs.NewWritableFile(there, {}, &file, nullptr),
      fs.ReopenWritableFile(wal, {}, &file, nullptr),
      fs.ReuseWritableFile(elsewhere, wal, {}, &file, nullptr),
      fs.NewRandomRWFile(wal, {}, &both, nullptr),
      fs.DeleteFile(wal, {}, nullptr),
      fs.DeleteFile(link + "/" + LogWalFiles().front(), {}, nullptr),
      fs.Truncate(wal, 0, {}, nullptr),
      fs.RenameFile(elsewhere, there, {}, nullptr),
      fs.RenameFile(there, elsewhere, {}, nullptr),
      fs.LinkFile(elsewhere, there, {}, nullptr),
      fs.NewLogger(path_ + "/LOG", {}, &logger, nullptr),
      fs.CreateDir(path_ + "/archive", {}, nullptr),
      fs.CreateDirIfMissing(path_ + "/archive", {}, nullptr),
      fs.DeleteDir(path_, {}, nullptr),
      fs.LockFile(elsewhere, {}, &lock, nullptr)};
  for (const IOStatus& status : refused) {
    EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  }
  // Elsewhere it is the file system below.
  ASSERT_TRUE(fs.NewWritableFile(elsewhere, {}, &file, nullptr).ok());
  file.reset();
  const std::string moved = directory_.File("moved");
  EXPECT_TRUE(fs.RenameFile(elsewhere, moved, {}, nullptr).ok());
  EXPECT_TRUE(fs.LinkFile(moved, elsewhere, {}, nullptr).ok());
  EXPECT_TRUE(fs.DeleteFile(moved, {}, nullptr).ok());
  const std::string folder = directory_.File("folder");
  EXPECT_TRUE(fs.CreateDir(folder, {}, nullptr).ok());
  EXPECT_TRUE(fs.CreateDirIfMissing(folder, {}, nullptr).ok());
  EXPECT_TRUE(fs.CreateDirIfMissing(path_, {}, nullptr).ok());
  EXPECT_TRUE(fs.NewLogger(folder + "/LOG", {}, &logger, nullptr).ok());
  logger.reset();
  EXPECT_TRUE(fs.DeleteFile(folder + "/LOG", {}, nullptr).ok());
  EXPECT_TRUE(fs.DeleteDir(folder, {}, nullptr).ok());
  Reopen();
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(FollowingTest, FilesOfTheLogLookLikeFiles) {
  Open();
  Put("a", "1", true);
  const std::string name = LogWalFiles().front();
  uint64_t expected = 0;
  ASSERT_TRUE(
      fs_->GetFileSize(path_ + "/" + name, {}, &expected, nullptr).ok());
  Close();
  env_.reset();
  fs_.reset();
  Instance other(wal_options_, options_);
  WalFollowingFileSystem& fs = other.fs();
  const std::string wal = path_ + "/" + name;
  EXPECT_TRUE(fs.FileExists(wal, {}, nullptr).ok());
  EXPECT_TRUE(fs.FileExists(path_ + "/CURRENT", {}, nullptr).ok());
  EXPECT_TRUE(fs.FileExists(path_ + "/999999.log", {}, nullptr).IsNotFound());
  uint64_t size = 0;
  ASSERT_TRUE(fs.GetFileSize(wal, {}, &size, nullptr).ok());
  EXPECT_EQ(size, expected);
  uint64_t seconds = 0;
  ASSERT_TRUE(fs.GetFileModificationTime(wal, {}, &seconds, nullptr).ok());
  EXPECT_GT(seconds, 0u);
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  ASSERT_TRUE(fs.NewRandomAccessFile(wal, {}, &file, nullptr).ok());
  std::string scratch(size + 10, '\0');
  rocksdb::Slice read;
  ASSERT_TRUE(
      file->Read(0, scratch.size(), {}, &read, scratch.data(), nullptr).ok());
  EXPECT_EQ(read.size(), size);
  std::vector<std::string> names;
  ASSERT_TRUE(fs.GetChildren(path_, {}, &names, nullptr).ok());
  EXPECT_THAT(names, Contains(name));
  std::vector<rocksdb::FileAttributes> attributes;
  ASSERT_TRUE(
      fs.GetChildrenFileAttributes(path_, {}, &attributes, nullptr).ok());
  // A marker whose file the log has not: as one that is not durable yet.
  ASSERT_TRUE(PutMarker(path_ + "/999999.log").ok());
  ASSERT_TRUE(fs.GetChildren(path_, {}, &names, nullptr).ok());
  EXPECT_THAT(names, Not(Contains("999999.log")));
  ASSERT_TRUE(DropMarker(path_ + "/999999.log").ok());
}

TEST_F(FollowingTest, LogThatIsNotThereFailsEveryCall) {
  wal_options_.log.path = directory_.File("nowhere");
  Instance other(wal_options_, options_);
  const std::vector<Status> refused = {
      other.fs().PrepareOptions(rocksdb::ConfigOptions()),
      other.OpenReadOnly(path_),
      other.OpenSecondary(path_, Own()),
      other.fs().DeleteFile(path_, {}, nullptr),
  };
  for (const Status& status : refused) {
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    // RocksDB's secondaries take that for nothing to read.
    EXPECT_FALSE(status.IsPathNotFound());
    EXPECT_THAT(status.ToString(), HasSubstr("nowhere"));
  }
}

using FollowingAClusterTest = testing::ClusterDatabaseFixture;

TEST_F(FollowingAClusterTest, PrimaryKeepsItsLogAndFailOverIsFollowed) {
  Open();
  Put("a", "1", true);
  WalOptions options = On(1);
  options.log.replication.node = 0;
  Instance other(options, options_);
  const Status opened =
      other.OpenSecondary(path_, directory_.File("secondary"));
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("a"), "1");
  Put("b", "2", true);  // it was not fenced
  ASSERT_TRUE(other.db().TryCatchUpWithPrimary().ok());
  EXPECT_EQ(other.Get("b"), "2");
  Close();
  cluster_.Stop(1);
  wal_options_ = On(2);
  Restart();
  Open();
  Put("c", "3", true);
  const Status caught = other.db().TryCatchUpWithPrimary();
  ASSERT_TRUE(caught.ok()) << caught.ToString();
  EXPECT_EQ(other.Get("c"), "3");
}

// WFG3.
class FollowingATakingOverTest : public testing::ClusterDatabaseFixture {
 protected:
  FollowingATakingOverTest() {
    Open();
    Put("a", "1", true);
  }
  WalOptions OfFollower() const {
    WalOptions options = On(1);
    options.log.replication.node = 0;
    return options;
  }
  // The database goes to another directory.
  void Continue(const std::string& wal_directory = "") {
    Close();
    wal_options_ = On(2);
    wal_options_.wal_directory = wal_directory;
    path_ = directory_.File("db2");
    wal_options_.take_over = path_;
    Restart();
    Open();
    Put("b", "2", true);
  }

  const std::string first_ = path_;
  const std::string own_ = directory_.File("secondary");
};

TEST_F(FollowingATakingOverTest, SecondaryIsToldOfATakingOver) {
  Instance other(OfFollower(), options_);
  ASSERT_TRUE(other.OpenSecondary(first_, own_).ok());
  Continue();
  for (int i = 0; i < 2; ++i) {
    const Status caught = other.db().TryCatchUpWithPrimary();
    EXPECT_TRUE(caught.IsIOError()) << caught.ToString();
    EXPECT_THAT(caught.ToString(), AllOf(HasSubstr("taken over into " + path_),
                                         HasSubstr("Open it there")));
  }
  Instance next(OfFollower(), options_);
  const Status opened = next.OpenSecondary(path_, own_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(next.Get("a"), "1");
  EXPECT_EQ(next.Get("b"), "2");
}

// It has not read the log since.
TEST_F(FollowingATakingOverTest, TakingOverIsNoticedByWhoReadsTheLogAgain) {
  Instance other(OfFollower(), options_);
  ASSERT_TRUE(other.fs().Follower().ok());
  Continue();
  const Status opened = other.OpenSecondary(path_, own_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("b"), "2");
}

// The follower's machine may have the storage mounted elsewhere.
TEST_F(FollowingATakingOverTest, PathsMayBeOthersOnThisMachine) {
  WalOptions options = OfFollower();
  const std::string mounted = directory_.File("mounted");
  constexpr auto kHow = std::filesystem::copy_options::recursive |
                        std::filesystem::copy_options::copy_symlinks;
  std::filesystem::copy(first_, mounted, kHow);
  options.wal_directory = mounted;
  Instance other(options, options_);
  ASSERT_TRUE(other.fs().Follower().ok());
  const Status opened = other.OpenSecondary(mounted, own_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("a"), "1");
  Continue();
  const Status caught = other.db().TryCatchUpWithPrimary();
  EXPECT_THAT(caught.ToString(), HasSubstr("was taken over into " + path_));
  // A wal_directory that the log itself names is no other path.
  options.wal_directory = path_;
  Instance next(options, options_);
  EXPECT_THAT(next.OpenSecondary(first_, own_).ToString(),
              HasSubstr("this log is that of the database"));
}

// The option says what the log says; so the database has its path, too.
TEST_F(FollowingATakingOverTest, WalApartTellsNothingOfOtherPaths) {
  Close();
  ASSERT_TRUE(rocksdb::DestroyDB(path_, options_).ok());
  options_.wal_dir = directory_.File("wal");
  Open();
  Put("a", "1", true);
  Continue(options_.wal_dir);
  WalOptions options = OfFollower();
  options.wal_directory = options_.wal_dir;
  Instance other(options, options_);
  EXPECT_THAT(other.OpenSecondary(first_, own_).ToString(),
              HasSubstr("this log is that of the database"));
  const Status opened = other.OpenSecondary(path_, own_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_EQ(other.Get("b"), "2");
}

TEST_F(FollowingATakingOverTest, DirectoryThatWasLeftIsNotFollowed) {
  Continue();
  Instance other(OfFollower(), options_);
  for (const Status& opened :
       {other.OpenSecondary(first_, own_), other.OpenReadOnly(first_)}) {
    EXPECT_TRUE(opened.IsIOError()) << opened.ToString();
    EXPECT_THAT(opened.ToString(), HasSubstr("that of the database " + path_));
  }
}

// A record that was refused once is not passed over the next time.
TEST_F(FollowingAClusterTest, RecordOfSomebodyElseIsRefusedEachTime) {
  Close();
  env_.reset();
  fs_.reset();
  auto log = Log::Open(On(1).log);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Append("no record of a WAL").ok());
  auto source = OpenWalSource(On(1));
  ASSERT_TRUE(source.ok()) << source.status();
  WalFollower follower(*std::move(source));
  for (int i = 0; i < 3; ++i) {
    const absl::Status refreshed = follower.Refresh();
    EXPECT_TRUE(absl::IsFailedPrecondition(refreshed)) << refreshed;
  }
}

// It catches up with what there is when it is asked, and not with what comes
// while it reads.
TEST_F(FollowingAClusterTest, CatchingUpEndsBesideABusyWriter) {
  Open();
  Put("a", "1", true);
  std::atomic<bool> stop{false};
  // lint: allow(one-thread) the sanitizer does not see what Debian's RocksDB
  // orders.
  std::jthread writer([&] {
    for (int i = 0; !stop; ++i) Put(std::to_string(i), "x", true);
  });
  WalOptions options = On(1);
  options.log.replication.node = 0;
  Instance other(options, options_);
  EXPECT_TRUE(other.OpenSecondary(path_, directory_.File("secondary")).ok());
  EXPECT_TRUE(other.db().TryCatchUpWithPrimary().ok());
  stop = true;
  writer.join();
  EXPECT_EQ(other.Get("a"), "1");
}

// Nothing is lost by that: it may be tried again.
TEST_F(FollowingAClusterTest, NodesOutOfReachAreAnErrorToTryAgain) {
  for (const int node : {1, 2, 3}) cluster_.Stop(node);
  WalOptions options = On(1);
  options.log.replication.open_timeout_ms = 100;
  Instance other(options, options_);
  const IOStatus asked =
      other.fs().FileExists(path_ + "/000001.log", {}, nullptr);
  EXPECT_TRUE(asked.IsIOError()) << asked.ToString();
  EXPECT_TRUE(asked.GetRetryable());
  EXPECT_FALSE(asked.GetDataLoss());
  EXPECT_THAT(asked.ToString(), HasSubstr("no node"));
}

TEST_F(FollowingAClusterTest, OneReplicaAloneIsRefused) {
  Open();
  Put("a", "1", true);
  Close();
  WalOptions options;
  options.log.path = cluster_.ReplicaPath(1);
  Instance other(options, options_);
  const Status opened = other.OpenReadOnly(path_);
  EXPECT_THAT(opened.ToString(), HasSubstr("name the cluster"));
}

}  // namespace
}  // namespace alpheus::wal
