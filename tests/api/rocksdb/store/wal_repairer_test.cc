// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_repairer.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "api/rocksdb/store/wal_index.h"
#include "log/base/bytes.h"

namespace alpheus::wal {
namespace {

class WalRepairerTest : public ::testing::Test {
 protected:
  void Take(const WalHeader& header, std::string_view body = "") {
    std::array<std::byte, kWalHeaderBytes> bytes;
    EncodeWalHeader(header, bytes);
    TakeRaw(std::string(AsText(bytes)).append(body));
  }
  void TakeRaw(const std::string& payload) {
    ++taken_;
    const absl::Status status = repairer_.Repair(
        AsBytes(payload),
        [this](std::span<const std::byte> emitted) { return Apply(emitted); });
    ASSERT_TRUE(status.ok()) << status;
  }
  // WME2.
  absl::Status Apply(std::span<const std::byte> payload) {
    emitted_.emplace_back(payload.begin(), payload.end());
    auto record = DecodeWalRecord(emitted_.back());
    return record.ok() ? index_.Apply(Lsn(emitted_.size()), 0, *record)
                       : record.status();
  }
  void Create(uint64_t id, std::string_view name) {
    Take({.kind = WalRecordKind::kCreate, .file = id}, name);
  }
  void Data(uint64_t id, uint64_t offset, std::string_view body) {
    Take({.kind = WalRecordKind::kData, .file = id, .offset = offset}, body);
  }
  std::string Content(const std::string& name) {
    const auto file = index_.Find(name);
    if (file == nullptr) return "(none)";
    std::vector<std::byte> bytes(file->size());
    EXPECT_EQ(file->Read(0, bytes), bytes.size());
    return std::string(AsText(bytes));
  }

  WalRepairer repairer_;
  WalIndex index_;
  std::deque<std::vector<std::byte>> emitted_;
  size_t taken_ = 0;
};

// WME1.
TEST_F(WalRepairerTest, WholeLogComesOutAsItIs) {
  Take({.kind = WalRecordKind::kHome, .file = 3}, std::string("/wal\0/db", 8));
  Create(3, "000003.log");
  Data(3, 0, "abc");
  Data(3, 3, "def");
  Take({.kind = WalRecordKind::kTruncate, .file = 3, .offset = 4});
  Data(3, 4, "x");
  Create(4, "000004.log");
  Take({.kind = WalRecordKind::kRename, .file = 4}, "archive/000004.log");
  Take({.kind = WalRecordKind::kRemove, .file = 4});
  EXPECT_EQ(emitted_.size(), taken_);
  EXPECT_EQ(Content("000003.log"), "abcdx");
  EXPECT_EQ(repairer_.tally().filled_bytes, 0u);
  EXPECT_TRUE(repairer_.tally().nameless.empty());
  EXPECT_TRUE(repairer_.is_of_the_plugin());
}

TEST_F(WalRepairerTest, LostDataBecomesDamagedBytes) {
  Create(1, "000003.log");
  Data(1, 0, "abc");
  Data(1, 10, "def");
  EXPECT_EQ(Content("000003.log").substr(0, 3), "abc");
  EXPECT_EQ(Content("000003.log").substr(10), "def");
  EXPECT_EQ(repairer_.tally().filled_bytes, 7u);
}

TEST_F(WalRepairerTest, LostDataBeforeATruncationToo) {
  Create(1, "000003.log");
  Take({.kind = WalRecordKind::kTruncate, .file = 1, .offset = 4});
  Data(1, 4, "x");
  EXPECT_EQ(Content("000003.log").size(), 5u);
}

TEST_F(WalRepairerTest, LostTruncationIsDoneAgain) {
  Create(1, "000003.log");
  Data(1, 0, "abcdef");
  Data(1, 2, "x");
  EXPECT_EQ(Content("000003.log"), "abx");
}

TEST_F(WalRepairerTest, LostRemovalBringsAFileBack) {
  Create(1, "000003.log");
  Data(1, 0, "abc");
  Create(2, "000004.log");
  EXPECT_EQ(Content("000003.log"), "abc");
}

TEST_F(WalRepairerTest, FileWhoseMakingIsLostIsCounted) {
  Create(1, "000003.log");
  Data(2, 0, "abc");
  Take({.kind = WalRecordKind::kRename, .file = 2}, "000007.log");
  Create(3, "000005.log");
  Data(3, 0, "x");
  EXPECT_EQ(index_.List(""),
            (std::vector<std::string>{"000003.log", "000005.log"}));
  EXPECT_EQ(repairer_.tally().nameless.size(), 1u);
  EXPECT_EQ(repairer_.tally().dropped_bytes, 13u);
}

TEST_F(WalRepairerTest, IdIsNotGivenTwice) {
  Create(5, "000003.log");
  Create(5, "000004.log");
  EXPECT_EQ(index_.List(""), std::vector<std::string>{"000003.log"});
}

TEST(WalRepairerOtherTest, RecordsOfOthersComeOutAsTheyAre) {
  WalRepairer repairer;
  std::string emitted;
  const auto status = repairer.Repair(AsBytes("anything"),
                                      [&](std::span<const std::byte> bytes) {
                                        emitted = std::string(AsText(bytes));
                                        return absl::OkStatus();
                                      });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(emitted, "anything");
  EXPECT_FALSE(repairer.is_of_the_plugin());
}

// A record for each block that is touched, none of them beyond its block.
TEST(DamagedWalBytesTest, RecordsEndWithTheirBlocks) {
  constexpr size_t kBlock = 32 << 10;
  for (const size_t offset : {size_t{0}, size_t{100}, kBlock - 3}) {
    for (const size_t bytes : {size_t{1}, size_t{6}, size_t{7}, 2 * kBlock}) {
      const auto damaged = DamagedWalBytes(offset, bytes);
      ASSERT_EQ(damaged.size(), bytes);
      for (size_t at = 0; at < bytes;) {
        const size_t block = kBlock - (offset + at) % kBlock;
        if (block < 7 || bytes - at < 7) {
          at += std::min(block, bytes - at);
          continue;
        }
        const size_t length = std::to_integer<size_t>(damaged[at + 4]) +
                              256 * std::to_integer<size_t>(damaged[at + 5]);
        EXPECT_EQ(damaged[at + 6], std::byte{1});
        ASSERT_EQ(7 + length, std::min(block, bytes - at));
        at += 7 + length;
      }
    }
  }
}

}  // namespace
}  // namespace alpheus::wal
