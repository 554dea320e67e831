// SPDX-License-Identifier: Apache-2.0
#include "api/log/recovered_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/core/read/record_cursor.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LogHarness;

// The opening has read records 4 and 5 of five.
class RecoveredSourceTest : public ::testing::Test {
 protected:
  RecoveredSourceTest() : harness_({.ring_capacity = 4096}) {
    EXPECT_TRUE(harness_.Open().ok());
    for (const char* text : {"1", "2", "3", "4", "5"}) harness_.Append(text);
    RecordCursor cursor(log().ring(), log().table(), log().head(),
                        log().head().offset + 4096);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(cursor.Next(), RecordCursor::Step::kRecord);
    }
    read_from_ = cursor.position();
  }

  AnyRingLog& log() { return harness_.log(); }

  std::unique_ptr<RecoveredSource> Source() {
    return std::make_unique<RecoveredSource>(
        log().ring(), /*ring_offset=*/0, log().table(), log().head(),
        read_from_, Lsn(5), is_released_, "model");
  }

  // Payloads that both ways of reading show, with the same status.
  std::vector<std::string> Shown() {
    std::vector<std::string> texts;
    std::unique_ptr<RecoveredSource> source = Source();
    status_ = source->ForEach([&](const RecoveredRecord& record) {
      texts.emplace_back(AsText(record.payload));
      return absl::OkStatus();
    });
    std::vector<std::string> one_by_one;
    source = Source();
    RecoveredRecord record;
    while (source->Next(&record)) {
      one_by_one.emplace_back(AsText(record.payload));
    }
    EXPECT_EQ(texts, one_by_one);
    EXPECT_EQ(source->status(), status_);
    return texts;
  }

  // Spoils the payload of a record; each takes a line.
  void Spoil(uint64_t lsn) {
    log().ring().data()[(lsn - 1) * kLineBytes + kRecordHeaderBytes] ^=
        std::byte{2};
  }

  LogHarness harness_;
  LogPosition read_from_;
  std::atomic<bool> is_released_{false};
  absl::Status status_;
};

TEST_F(RecoveredSourceTest, ShowsReadAndUnreadRecords) {
  EXPECT_THAT(Shown(), ElementsAre("1", "2", "3", "4", "5"));
  EXPECT_TRUE(status_.ok());
}

// P-A4.6: an error, not the end.
TEST_F(RecoveredSourceTest, DamageThatTheOpeningDidNotReadIsAnErrorHere) {
  Spoil(2);
  EXPECT_THAT(Shown(), ElementsAre("1"));
  EXPECT_TRUE(absl::IsDataLoss(status_));
  EXPECT_THAT(status_.message(), HasSubstr("LSN 2"));
}

TEST_F(RecoveredSourceTest, UnreadRecordsMustLeadToThoseThatWereRead) {
  read_from_.chain ^= 1;
  EXPECT_THAT(Shown(), ElementsAre("1", "2"));
  EXPECT_TRUE(absl::IsDataLoss(status_));
  EXPECT_THAT(status_.message(), HasSubstr("chain"));
}

TEST_F(RecoveredSourceTest, CleanedUnreadRecordsAreNotShown) {
  ASSERT_TRUE(log().Cleanup(Lsn(2)).ok());
  EXPECT_THAT(Shown(), ElementsAre("1", "3", "4", "5"));
  ASSERT_TRUE(log().CleanupThrough(Lsn(4)).ok());
  EXPECT_THAT(Shown(), ElementsAre("5"));
  ASSERT_TRUE(log().CleanupAll().ok());
  EXPECT_THAT(Shown(), IsEmpty());
  EXPECT_TRUE(status_.ok());
}

}  // namespace
}  // namespace alpheus
