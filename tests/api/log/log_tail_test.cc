// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

class LogTailTest : public ::testing::Test {
 protected:
  LogTailTest() {
    EXPECT_TRUE(Log::Format({path_, 256 * 1024}).ok());
    Open();
  }
  void Open() {
    tail_.reset();
    log_.reset();
    auto log = Log::Open({.path = path_, .idle_force_us = 0});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  void Append(const std::string& text) {
    const auto lsn = log_->Append(text);
    ASSERT_TRUE(lsn.ok()) << lsn.status();
  }
  LogTail& TailFrom(uint64_t lsn) {
    auto tail = log_->Tail(Lsn(lsn));
    EXPECT_TRUE(tail.ok()) << tail.status();
    tail_ = *std::move(tail);
    return *tail_;
  }
  // All that it shows until there is nothing new.
  static std::vector<std::string> Shown(LogTail& tail) {
    std::vector<std::string> payloads;
    for (;;) {
      const auto record = tail.Next();
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok() || !*record) return payloads;
      payloads.emplace_back(AsText((*record)->payload));
    }
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("log");
  std::unique_ptr<Log> log_;
  std::unique_ptr<LogTail> tail_;
};

TEST_F(LogTailTest, RecordsAreShownAsTheyBecomeDurable) {
  Append("a");
  LogTail& tail = TailFrom(0);
  EXPECT_EQ(tail.durable_lsn(), Lsn(1));
  EXPECT_THAT(Shown(tail), ElementsAre("a"));
  EXPECT_THAT(Shown(tail), IsEmpty());
  Append("b");
  Append("");
  EXPECT_THAT(Shown(tail), ElementsAre("b", ""));
  EXPECT_EQ(tail.durable_lsn(), Lsn(3));
  EXPECT_EQ(tail.next_lsn(), Lsn(4));
}

// Goal: LT1, P-C4. A record that is whole and not durable may be dropped.
// Reserved, shown by a tail and recovered, a payload lies at one offset of the
// ring, also where the ring has gone round.
TEST_F(LogTailTest, OffsetIsThatOfThePayloadInTheRing) {
  const std::string large(40'000, 'l');
  uint64_t offset = 0;
  for (int i = 0; i < 10; ++i) {
    auto record = log_->Reserve(large.size());
    ASSERT_TRUE(record.ok()) << record.status();
    const std::span<std::byte> payload = record->payload();
    EXPECT_GT(record->offset().value, offset);
    offset = record->offset().value;
    EXPECT_EQ(payload.data(),
              log_->ring().data() + offset % log_->ring_bytes());
    std::ranges::fill(payload, static_cast<std::byte>(i));
    const auto lsn = log_->Complete(*std::move(record));
    ASSERT_TRUE(lsn.ok() && log_->Force(*lsn).ok());
    const auto shown = TailFrom(lsn->value).Next();
    ASSERT_TRUE(shown.ok() && *shown) << shown.status();
    EXPECT_EQ((*shown)->offset.value, offset);
    if (i > 0) {
      ASSERT_TRUE(log_->CleanupThrough(*lsn - 1).ok());
    }
  }
  EXPECT_GT(offset, log_->ring_bytes());
  EXPECT_EQ(log_->ring().size(), log_->ring_bytes());
  Open();
  std::vector<uint64_t> offsets;
  const absl::Status read =
      log_->ForEachRecovered([&](const RecoveredRecord& record) {
        offsets.push_back(record.offset.value);
        EXPECT_EQ(record.payload.data(),
                  log_->ring().data() + offsets.back() % log_->ring_bytes());
        return absl::OkStatus();
      });
  EXPECT_TRUE(read.ok()) << read;
  ASSERT_FALSE(offsets.empty());
  EXPECT_EQ(offsets.back(), offset);
  std::vector<uint64_t> in_range;
  RecoveredRange range = log_->Recovered();
  for (const RecoveredRecord& record : range) {
    in_range.push_back(record.offset.value);
  }
  EXPECT_TRUE(range.status().ok());
  EXPECT_EQ(in_range, offsets);
}

TEST_F(LogTailTest, RecordThatIsNotDurableIsNotShown) {
  LogTail& tail = TailFrom(0);
  auto record = log_->Reserve(1);
  ASSERT_TRUE(record.ok());
  const auto lsn = log_->Complete(*std::move(record));
  ASSERT_TRUE(lsn.ok());
  EXPECT_THAT(Shown(tail), IsEmpty());
  EXPECT_EQ(tail.durable_lsn(), Lsn(0));
  ASSERT_TRUE(log_->Force(*lsn).ok());
  EXPECT_EQ(Shown(tail).size(), 1u);
}

TEST_F(LogTailTest, AbortedRecordsAreLeftOut) {
  log_->Reserve(1)->Abort();
  Append("b");
  log_->Reserve(1)->Abort();
  LogTail& tail = TailFrom(1);
  EXPECT_THAT(Shown(tail), ElementsAre("b"));
  Append("d");
  const auto record = tail.Next();
  ASSERT_TRUE(record.ok() && *record);
  EXPECT_EQ((*record)->lsn, Lsn(4));
  EXPECT_EQ((*record)->epoch, log_->report().epoch);
}

// Goal: LT2. Method: any LSN of several epochs, with PADs and long walks from
// the nearest known place in between.
TEST_F(LogTailTest, TailGoesOnFromAnyLsn) {
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) {
    texts.push_back(std::string(i % 7 * 100, 'x') + std::to_string(i));
    Append(texts.back());
    if (i % 90 == 50) Open();
  }
  for (size_t from = 1; from <= texts.size() + 1; from += 13) {
    const auto expected = std::vector<std::string>(
        texts.begin() + static_cast<ptrdiff_t>(from) - 1, texts.end());
    EXPECT_EQ(Shown(TailFrom(from)), expected) << "from " << from;
  }
}

TEST_F(LogTailTest, OnlyLsnsOfTheLogMayBeTheFirst) {
  for (const char* text : {"a", "b", "c"}) Append(text);
  ASSERT_TRUE(log_->CleanupThrough(Lsn(1)).ok());
  for (const uint64_t from : {1, 5, 1000}) {
    const auto tail = log_->Tail(Lsn(from));
    EXPECT_EQ(tail.status().code(), Code::kOutOfRange) << from;
    EXPECT_THAT(std::string(tail.status().message()), HasSubstr("LSN 2"));
  }
  EXPECT_THAT(Shown(TailFrom(0)), ElementsAre("b", "c"));
  EXPECT_THAT(Shown(TailFrom(4)), IsEmpty());
}

// Goal: LT3. The bytes are still there, at the place that the tail knows.
TEST_F(LogTailTest, TailThatIsOvertakenIsToldSo) {
  for (const char* text : {"a", "b", "c"}) Append(text);
  LogTail& tail = TailFrom(0);
  ASSERT_TRUE(tail.Next().ok());
  ASSERT_TRUE(log_->CleanupThrough(Lsn(2)).ok());
  const auto overtaken = tail.Next();
  EXPECT_EQ(overtaken.status().code(), Code::kOutOfRange);
  EXPECT_THAT(std::string(overtaken.status().message()),
              AllOf(HasSubstr("LSN 2 "), HasSubstr("LSN 3")));
  EXPECT_EQ(tail.next_lsn(), Lsn(2));
  EXPECT_EQ(tail.Next().status().code(), Code::kOutOfRange);
  EXPECT_THAT(Shown(TailFrom(log_->head_lsn().value)), ElementsAre("c"));
}

TEST_F(LogTailTest, DamagedRecordIsAnErrorNotTheEnd) {
  for (const char* text : {"first", "second", "third"}) Append(text);
  LogTail& tail = TailFrom(1);
  ASSERT_TRUE(tail.Next().ok());
  const auto* payload = log_->Reserve(0)->payload().data();
  // Three lines before the record that was just given up.
  const_cast<std::byte*>(payload)[-128] ^= std::byte{1};
  for (int i = 0; i < 2; ++i) {
    const auto damaged = tail.Next();
    EXPECT_EQ(damaged.status().code(), Code::kDataLoss);
    EXPECT_THAT(std::string(damaged.status().message()), HasSubstr("LSN 2 "));
  }
}

TEST_F(LogTailTest, ClosedLogIsStillShown) {
  LogTail& tail = TailFrom(0);
  Append("a");
  ASSERT_TRUE(log_->Close().ok());
  EXPECT_THAT(Shown(tail), ElementsAre("a"));
}

// Goal: LT1, LT3, beside a writer that wraps the ring all the time and cleans
// what the tail may be about to read.
TEST_F(LogTailTest, TailBesideABusyWriterSeesEachRecordOnce) {
  constexpr uint64_t kRecords = 20'000;
  LogTail& tail = TailFrom(1);
  std::jthread writer([&] {
    for (uint64_t n = 1; n <= kRecords;) {
      const std::string text(100 + n % 3000, static_cast<char>('a' + n % 26));
      if (log_->Append(text).ok()) {
        ++n;
      } else {
        ASSERT_TRUE(log_->CleanupThrough(log_->durable_lsn() - 10).ok());
      }
    }
  });
  uint64_t shown = 0;
  std::unique_ptr<LogTail> fresh;
  LogTail* now = &tail;
  while (now->next_lsn() <= Lsn(kRecords)) {
    const Lsn expected = now->next_lsn();
    const auto record = now->Next();
    if (!record.ok()) {
      ASSERT_EQ(record.status().code(), Code::kOutOfRange) << record.status();
      auto again = log_->Tail(Lsn(0));
      ASSERT_TRUE(again.ok());
      fresh = *std::move(again);
      now = fresh.get();
      continue;
    }
    if (!*record) continue;
    ASSERT_EQ((*record)->lsn, expected);
    ASSERT_LE((*record)->lsn, now->durable_lsn());
    const uint64_t n = (*record)->lsn.value;
    const std::string_view text = AsText((*record)->payload);
    ASSERT_EQ(text,
              std::string(100 + n % 3000, static_cast<char>('a' + n % 26)));
    ++shown;
  }
  EXPECT_GT(shown, 0u);
}

using LogTailDeathTest = LogTailTest;

TEST_F(LogTailDeathTest, TailThatOutlivesItsLogAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the log is its own
  EXPECT_DEATH(
      {
        TailFrom(0);
        log_.reset();
      },
      "must not outlive its log");
}

}  // namespace
}  // namespace alpheus
