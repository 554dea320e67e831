// SPDX-License-Identifier: Apache-2.0
// Where a follower gets its records: the region of a local log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/rocksdb/follow/wal_follower.h"
#include "api/rocksdb/store/wal_store.h"
#include "log/base/bytes.h"
#include "tests/api/rocksdb/follow/followed_text.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TextOf;
using Code = absl::StatusCode;

// A region of a local log, beside its writer.
class WalSourceTest : public ::testing::Test {
 protected:
  WalSourceTest() {
    options_.log.path = directory_.File("wal");
    options_.log.idle_force_us = 0;
    options_.create_bytes = 256 << 10;
    options_.stall_ms = 0;
    store_ = *WalStore::Open(options_, [] { return uint64_t{1000}; });
  }
  std::unique_ptr<WalFollower> Follow() {
    auto source = OpenWalSource(options_);
    EXPECT_TRUE(source.ok()) << source.status();
    return std::make_unique<WalFollower>(*std::move(source));
  }
  void Write(const std::string& name, std::string_view text) {
    auto file = store_->Find(name);
    if (file == nullptr) file = *store_->Create(name);
    ASSERT_TRUE(store_->Append(*file, AsBytes(text)).ok());
    ASSERT_TRUE(store_->Sync(*file).ok());
  }
  // The text of each piece that is written into NUMBER.log.
  static std::string LettersOf(int number) {
    return std::string(10'000, static_cast<char>('a' + number % 26));
  }
  static void ExpectWholeFiles(const WalFollower& follower) {
    const std::vector<std::string> names = follower.List("");
    EXPECT_LE(names.size(), 2U);
    for (const std::string& name : names) {
      const std::string text = TextOf(follower.Find(name));
      EXPECT_LE(text.size(), 30'000U);
      EXPECT_EQ(text.find_first_not_of(LettersOf(std::stoi(name))[0]),
                std::string::npos)
          << name;
    }
  }
  // Beside a writer is shown what a watermark proves: all but the last batch,
  // until the log idles (P-A3.5).
  void WriteAnotherBatch() {
    ASSERT_TRUE(store_->SetHome({"/wal", std::to_string(++batches_)}).ok());
  }

  testing::TempDirectory directory_;
  WalOptions options_;
  std::unique_ptr<WalStore> store_;
  int batches_ = 0;
};

TEST_F(WalSourceTest, WriterIsFollowedAndNotDisturbed) {
  Write("000004.log", "one ");
  WriteAnotherBatch();
  const auto follower = Follow();
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(TextOf(follower->Find("000004.log")), "one ");
  Write("000004.log", "two");
  WriteAnotherBatch();
  ASSERT_TRUE(follower->Refresh().ok());
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(TextOf(follower->Find("000004.log")), "one two");
  // A file that is not durable is not there.
  const auto file = *store_->Create("000005.log");
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_THAT(follower->List(""), ElementsAre("000004.log"));
}

TEST_F(WalSourceTest, LogWithoutAWriterIsReadToItsEnd) {
  Write("000004.log", "one");
  store_.reset();
  const auto follower = Follow();
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_EQ(TextOf(follower->Find("000004.log")), "one");
}

// Several laps of the ring between two looks.
TEST_F(WalSourceTest, OvertakenFollowerReadsAgain) {
  Write("000004.log", "first");
  WriteAnotherBatch();
  const auto follower = Follow();
  ASSERT_TRUE(follower->Refresh().ok());
  const WalFollower::Followed first = follower->Find("000004.log");
  const std::string piece(20'000, 'x');
  for (int i = 5; i < 50; ++i) {
    Write(std::to_string(i) + ".log", piece);
    ASSERT_TRUE(
        store_->Remove(i == 5 ? "000004.log" : std::to_string(i - 1) + ".log")
            .ok());
  }
  WriteAnotherBatch();
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_GE(follower->restarts(), 1);
  EXPECT_THAT(follower->List(""), ElementsAre("49.log"));
  EXPECT_EQ(TextOf(follower->Find("49.log")), piece);
  EXPECT_EQ(TextOf(first), "first");
}

// Its bytes are used again while they are read: what is shown is whole all the
// same, and of files that were there at one moment.
TEST_F(WalSourceTest, FollowerOfABusyWriterShowsWholeFiles) {
  Write("100.log", LettersOf(100));
  WriteAnotherBatch();
  const auto follower = Follow();
  std::atomic<bool> stop{false};
  std::atomic<int> files{0};
  std::jthread writer([&] {
    for (int i = 101; !stop; ++i, ++files) {
      const std::string name = std::to_string(i) + ".log";
      for (int n = 0; n < 3; ++n) Write(name, LettersOf(i));
      EXPECT_TRUE(store_->Remove(std::to_string(i - 1) + ".log").ok());
    }
    WriteAnotherBatch();
  });
  for (int i = 0; i < 300 || files < 20; ++i) {
    const absl::Status read = follower->Refresh();
    // The log may be cleaned faster than it can be read.
    if (absl::IsUnavailable(read)) continue;
    EXPECT_TRUE(read.ok()) << read;
    ExpectWholeFiles(*follower);
  }
  stop = true;
  writer.join();
  ASSERT_TRUE(follower->Refresh().ok());
  ExpectWholeFiles(*follower);
  const std::vector<std::string> left = follower->List("");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(TextOf(follower->Find(left[0])).size(), 30'000U);
}

TEST_F(WalSourceTest, EmptiedLogHasNoFiles) {
  Write("000004.log", "one");
  WriteAnotherBatch();
  const auto follower = Follow();
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_THAT(follower->List(""), ElementsAre("000004.log"));
  ASSERT_TRUE(store_->Remove("000004.log").ok());
  WriteAnotherBatch();
  ASSERT_TRUE(follower->Refresh().ok());
  EXPECT_THAT(follower->List(""), IsEmpty());
}

TEST_F(WalSourceTest, WhatCannotBeFollowedIsNamed) {
  options_.log.path = directory_.File("nowhere");
  EXPECT_EQ(OpenWalSource(options_).status().code(), Code::kNotFound);
  options_.log.replication.cluster_file = directory_.File("no.toml");
  EXPECT_FALSE(OpenWalSource(options_).ok());
}

}  // namespace
}  // namespace alpheus::wal
