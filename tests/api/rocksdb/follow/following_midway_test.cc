// SPDX-License-Identifier: Apache-2.0
// Instances that follow a log whose primary flushes while they are between
// MANIFEST and WAL (WFG4).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rocksdb/db.h"
#include "rocksdb/file_system.h"
#include "tests/api/rocksdb/follow/following_instance.h"

namespace alpheus::wal {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Status;
using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Instance;
using ::testing::Not;

// Calls a function when a MANIFEST has been read to its end: by a secondary,
// which then reads on, when nothing comes any more, else when less comes.
class MidwayFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  MidwayFileSystem()
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        midway_(std::make_shared<Midway>()) {}
  const char* Name() const override { return "MidwayFileSystem"; }
  // Once.
  void CallMidway(bool is_secondary, std::function<void()> function) {
    *midway_ = {is_secondary, std::move(function)};
  }
  bool was_called() const { return midway_->function == nullptr; }
  // Once, when the file that vouches is open.
  void CallAtVouch(std::function<void()> function) {
    at_vouch_ = std::move(function);
  }

  IOStatus NewSequentialFile(const std::string& path,
                             const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                             rocksdb::IODebugContext* dbg) override {
    IOStatus opened = target_->NewSequentialFile(path, options, result, dbg);
    if (path.ends_with("/ALPHEUS")) {
      if (const auto function = std::exchange(at_vouch_, {})) function();
    }
    if (opened.ok() && path.find("MANIFEST") != std::string::npos) {
      *result = std::make_unique<Manifest>(std::move(*result), midway_);
    }
    return opened;
  }

 private:
  struct Midway {
    bool is_secondary = false;
    std::function<void()> function;
  };

  class Manifest final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    Manifest(std::unique_ptr<rocksdb::FSSequentialFile> file,
             std::shared_ptr<Midway> midway)
        : FSSequentialFileOwnerWrapper(std::move(file)),
          midway_(std::move(midway)) {}
    IOStatus Read(size_t n, const IOOptions& options, rocksdb::Slice* result,
                  char* scratch, rocksdb::IODebugContext* dbg) override {
      IOStatus read =
          FSSequentialFileOwnerWrapper::Read(n, options, result, scratch, dbg);
      const bool is_end =
          midway_->is_secondary ? result->empty() : result->size() < n;
      if (is_end) {
        if (const auto midway = std::exchange(midway_->function, {})) midway();
      }
      return read;
    }

   private:
    const std::shared_ptr<Midway> midway_;
  };

  const std::shared_ptr<Midway> midway_;
  std::function<void()> at_vouch_;
};

// RocksDB reads the MANIFEST, the primary flushes, RocksDB lists the WAL.
class FollowingAFlushMidwayTest : public testing::FollowingTest,
                                  public ::testing::WithParamInterface<bool> {
 protected:
  FollowingAFlushMidwayTest() {
    options_.track_and_verify_wals_in_manifest = GetParam();
    Open();
    PutShown("a", "1");
    // A closed WAL file of which the MANIFEST tells, and that is needed.
    rocksdb::ColumnFamilyHandle* other = nullptr;
    EXPECT_TRUE(db_->CreateColumnFamily({}, "other", &other).ok());
    EXPECT_TRUE(db_->Put({}, other, "b", "2").ok());
    EXPECT_TRUE(db_->Flush({}, other).ok());
    EXPECT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
    EXPECT_EQ(LogWalFiles().size(), 2u);
    PutShown("c", "3");
  }
  void FlushTail() {
    const std::vector<std::string> before = LogWalFiles();
    PutShown("tail", "4");
    Flush();
    ASSERT_EQ(LogWalFiles().size(), 1u);
    ASSERT_THAT(before, Not(Contains(LogWalFiles().front())));
    PutShown("later", "5");
  }
  void FlushTailMidway(bool is_secondary) {
    base_->CallMidway(is_secondary, [this] { FlushTail(); });
  }
  void ExpectAll(Instance& instance) {
    EXPECT_TRUE(base_->was_called());
    for (const auto& [key, value] :
         {std::pair("a", "1"), std::pair("c", "3"), std::pair("tail", "4"),
          std::pair("later", "5")}) {
      EXPECT_EQ(instance.Get(key), value) << key;
    }
  }

  const std::shared_ptr<MidwayFileSystem> base_ =
      std::make_shared<MidwayFileSystem>();
};

INSTANTIATE_TEST_SUITE_P(VerifiedWals, FollowingAFlushMidwayTest,
                         ::testing::Bool());

TEST_P(FollowingAFlushMidwayTest, TailThatIsFlushedMidwayIsShownByCatchingUp) {
  Instance other(wal_options_, options_, base_);
  ASSERT_TRUE(other.OpenSecondary(path_, Own()).ok());
  FlushTailMidway(/*is_secondary=*/true);
  const Status caught = other.db().TryCatchUpWithPrimary();
  ASSERT_TRUE(caught.ok()) << caught.ToString();
  ExpectAll(other);
  PutShown("last", "6");
  ASSERT_TRUE(other.db().TryCatchUpWithPrimary().ok());
  EXPECT_EQ(other.Get("last"), "6");
  ExpectAll(other);
}

TEST_P(FollowingAFlushMidwayTest, TailThatIsFlushedMidwayIsShownByASecondary) {
  Instance other(wal_options_, options_, base_);
  FlushTailMidway(/*is_secondary=*/true);
  const Status opened = other.OpenSecondary(path_, Own());
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  ExpectAll(other);
}

TEST_P(FollowingAFlushMidwayTest, TailThatIsFlushedMidwayIsShownReadOnly) {
  Instance other(wal_options_, options_, base_);
  FlushTailMidway(/*is_secondary=*/false);
  const Status opened = other.OpenFamilyReadOnly(path_);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  ExpectAll(other);
}

// With the flush the log's generation rises (DV4, directory_vouch.h).
TEST_P(FollowingAFlushMidwayTest, FlushWhileTheDirectoryIsAskedIsNoOtherOne) {
  Instance other(wal_options_, options_, base_);
  bool was_called = false;
  base_->CallAtVouch([&] {
    FlushTail();
    was_called = true;
  });
  const Status opened = other.OpenSecondary(path_, Own());
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  EXPECT_TRUE(was_called);
  ExpectAll(other);
}

// Another one of the same environment catches up meanwhile, in its thread.
TEST_P(FollowingAFlushMidwayTest, TailThatIsFlushedMidwayIsShownBesideOthers) {
  Instance other(wal_options_, options_, base_);
  ASSERT_TRUE(other.OpenSecondary(path_, Own()).ok());
  base_->CallMidway(/*is_secondary=*/true, [&] {
    FlushTail();
    const std::string current = path_ + "/CURRENT";
    // lint: allow(one-thread) the sanitizer does not see what Debian's RocksDB
    // orders.
    std::jthread([&] {
      for (int i = 0; i < 100; ++i) {
        std::unique_ptr<rocksdb::FSSequentialFile> file;
        std::vector<std::string> names;
        EXPECT_TRUE(
            other.fs().NewSequentialFile(current, {}, &file, nullptr).ok());
        EXPECT_TRUE(other.fs().GetChildren(path_, {}, &names, nullptr).ok());
      }
    });
  });
  const Status caught = other.db().TryCatchUpWithPrimary();
  ASSERT_TRUE(caught.ok()) << caught.ToString();
  ExpectAll(other);
}

// More than the ring holds, so that what the tables lack was not read.
TEST_P(FollowingAFlushMidwayTest, OneThatIsOvertakenMidwayTriesAgain) {
  Instance other(wal_options_, options_, base_);
  ASSERT_TRUE(other.OpenSecondary(path_, Own()).ok());
  base_->CallMidway(/*is_secondary=*/true, [this] {
    const std::string value(100'000, 'x');
    for (int i = 0; i < 400; ++i) {
      Put(std::to_string(i), value);
      if (i % 50 == 49) {
        ASSERT_TRUE(db_->Flush({}).ok());
      }
    }
    FlushTail();
  });
  const Status caught = other.db().TryCatchUpWithPrimary();
  EXPECT_TRUE(caught.IsIOError()) << caught.ToString();
  EXPECT_THAT(caught.ToString(), HasSubstr("try again"));
  EXPECT_EQ(other.Get("later"), "NotFound: ");
  const Status again = other.db().TryCatchUpWithPrimary();
  ASSERT_TRUE(again.ok()) << again.ToString();
  ExpectAll(other);
}

}  // namespace
}  // namespace alpheus::wal
