// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/cleaner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/store/engine/engine.h"
#include "api/store/engine/room.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/api/store/engine/memory_log.h"

namespace alpheus::testing {
namespace {

using store::Cleaner;
using store::Engine;
using store::Operation;
using store::Outcome;
using ::testing::HasSubstr;

// A store on the smallest ring.
class StoreCleanerTest : public ::testing::Test {
 protected:
  static constexpr size_t kRing = store::Room::kRingBytesMin;

  StoreCleanerTest() { Open(); }

  void Open() {
    cleaner_ = nullptr;
    engine_ = nullptr;
    used_ = 0;
    auto engine = Engine::Recover(
        log_,
        {.allocate =
             [this](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
          const auto at = reinterpret_cast<uintptr_t>(memory_.data() + used_);
          used_ += (64 - at % 64) % 64;
          const auto part = std::span(memory_).subspan(used_, bytes);
          used_ += bytes;
          std::ranges::fill(part, std::byte{0});
          return part;
        }});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    cleaner_ = std::make_unique<Cleaner>(log_, *engine_,
                                         Cleaner::Options{.step_bytes = 4096});
  }

  std::shared_ptr<absl::StatusOr<Outcome>> Submit(const Operation& operation) {
    auto answer = std::make_shared<absl::StatusOr<Outcome>>(
        absl::UnknownError("no answer"));
    engine_->Submit({operation},
                    [answer](const absl::Status& status,
                             const std::vector<Outcome>& outcomes) {
                      if (status.ok()) *answer = outcomes.front();
                      if (!status.ok()) *answer = status;
                    });
    return answer;
  }
  absl::StatusOr<Outcome> Put(const std::string& key,
                              const std::string& value) {
    const auto answer =
        Submit({Operation::Kind::kPut, AsBytes(key), AsBytes(value)});
    Settle();
    return *answer;
  }
  absl::StatusOr<Outcome> Delete(const std::string& key) {
    const auto answer =
        Submit({.kind = Operation::Kind::kDelete, .key = AsBytes(key)});
    Settle();
    return *answer;
  }
  void Settle() {
    engine_->Append();
    log_.MakeAllDurable();
    log_.Confirm();
    engine_->Poll();
  }
  // Appends records that are replaced at once, until a cleaner is due.
  void FillUntilDue() {
    while (log_.free_bytes() > kRing * 3 / 10) {
      ASSERT_TRUE(Put("filler", std::string(500, 'f')).ok());
    }
  }
  // Cleans until there is nothing to do, which comes soon.
  void Clean() {
    for (int steps = 0; steps < 2'000; ++steps) {
      const absl::StatusOr<bool> any = cleaner_->Poll();
      ASSERT_TRUE(any.ok()) << any.status();
      if (!*any) return;
      Settle();
    }
    FAIL() << "the cleaner copies for ever: " << log_.free_bytes()
           << " bytes are free, " << engine_->live_bytes() << " live";
  }
  std::optional<std::string> Get(const std::string& key) const {
    const auto found = engine_->Get(AsBytes(key));
    if (!found) return std::nullopt;
    return std::string(AsText(found->value));
  }
  std::map<std::string, std::string> All() const {
    std::map<std::string, std::string> all;
    for (std::optional<uint64_t> cursor = 0; cursor;) {
      cursor = engine_->Scan(*cursor, [&](auto key, const auto& found) {
        all.emplace(AsText(key), AsText(found.value));
      });
    }
    return all;
  }

  std::vector<std::byte> memory_{std::vector<std::byte>(size_t{4} << 20)};
  size_t used_ = 0;
  MemoryLog log_{kRing};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Cleaner> cleaner_;
};

// CLN1. Many laps of the ring, with crashes.
TEST_F(StoreCleanerTest, ObjectsStayHoweverOftenTheRingGoesRound) {
  Random random(34);
  std::map<std::string, std::string> expected;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = absl::StrCat("key ", random.Next() % 300);
    if (random.Next() % 5 == 0) {
      ASSERT_TRUE(Delete(key).ok());
      expected.erase(key);
    } else {
      const std::string value(random.Next() % 1'000, 'a' + i % 26);
      const auto put = Put(key, value);
      ASSERT_TRUE(put.ok()) << put.status() << ", round " << i;
      expected[key] = value;
    }
    ASSERT_NO_FATAL_FAILURE(Clean());
    if (random.Next() % 500 != 0) continue;
    ASSERT_EQ(All(), expected) << "round " << i;
    const uint64_t live = engine_->live_bytes();
    log_.Crash(log_.durable());
    Open();
    ASSERT_EQ(All(), expected) << "round " << i << ", recovered";
    ASSERT_EQ(engine_->live_bytes(), live) << "round " << i;
  }
  ASSERT_EQ(All(), expected);
  EXPECT_GT(log_.record(log_.records() - 1).offset.value, 10 * kRing);
}

TEST_F(StoreCleanerTest, VersionsStay) {
  const auto put = Put("stays", "v");
  ASSERT_TRUE(put.ok());
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(Put("changes", std::string(200, 'v')).ok());
    ASSERT_NO_FATAL_FAILURE(Clean());
  }
  const auto found = engine_->Get(AsBytes("stays"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->version, put->version);
  Open();
  EXPECT_EQ(engine_->Get(AsBytes("stays"))->version, put->version);
}

// ENG6, CLN1: no copy lies behind a deletion that is not durable yet, and the
// head does not pass the original before that is.
TEST_F(StoreCleanerTest, NewerVersionThatIsNotDurableStopsTheHead) {
  ASSERT_TRUE(Put("k", "old").ok());
  FillUntilDue();
  const uint64_t before = log_.free_bytes();
  const auto deletion =
      Submit({.kind = Operation::Kind::kDelete, .key = AsBytes("k")});
  engine_->Append();
  const size_t records = log_.records();
  const auto begun = cleaner_->Poll();
  ASSERT_TRUE(begun.ok() && *begun);
  engine_->Append();
  EXPECT_EQ(log_.records(), records) << "nothing is to be copied";
  log_.Confirm();
  engine_->Poll();
  const auto waits = cleaner_->Poll();
  ASSERT_TRUE(waits.ok());
  EXPECT_FALSE(*waits);
  EXPECT_TRUE(cleaner_->is_busy());
  EXPECT_LE(log_.free_bytes(), before);
  EXPECT_EQ(Get("k"), "old");
  log_.MakeAllDurable();
  engine_->Poll();
  EXPECT_TRUE(deletion->ok());
  ASSERT_NO_FATAL_FAILURE(Clean());
  EXPECT_GT(log_.free_bytes(), before);
  EXPECT_EQ(Get("k"), std::nullopt);
  Open();
  EXPECT_EQ(Get("k"), std::nullopt);
}

// CLN1: the head waits for copies, too.
TEST_F(StoreCleanerTest, CopyThatIsNotDurableStopsTheHead) {
  ASSERT_TRUE(Put("k", "old").ok());
  FillUntilDue();
  const auto begun = cleaner_->Poll();
  ASSERT_TRUE(begun.ok() && *begun);
  engine_->Append();
  EXPECT_GT(cleaner_->copied_bytes(), 0U);
  const uint64_t before = log_.free_bytes();
  engine_->Poll();
  const auto waits = cleaner_->Poll();
  ASSERT_TRUE(waits.ok());
  EXPECT_FALSE(*waits);
  EXPECT_EQ(log_.free_bytes(), before);
  log_.Crash(log_.durable());
  Open();
  EXPECT_EQ(Get("k"), "old");
}

// ENG6: the put is appended after the copy was asked for, in one record.
TEST_F(StoreCleanerTest, CopyOfWhatIsReplacedMeanwhileIsNotMade) {
  ASSERT_TRUE(Put("k", "old").ok());
  FillUntilDue();
  const auto put =
      Submit({Operation::Kind::kPut, AsBytes("k"), AsBytes("new")});
  const auto begun = cleaner_->Poll();
  ASSERT_TRUE(begun.ok() && *begun);
  Settle();
  EXPECT_TRUE(put->ok());
  EXPECT_EQ(Get("k"), "new");
  ASSERT_NO_FATAL_FAILURE(Clean());
  Open();
  EXPECT_EQ(Get("k"), "new");
}

// CLN2: what is durable and not shown would be taken for garbage.
TEST_F(StoreCleanerTest, RecordThatIsNotShownIsNotRead) {
  cleaner_ = std::make_unique<Cleaner>(
      log_, *engine_, Cleaner::Options{.begin_percent = 0, .end_percent = 0});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Put("filler", std::string(500, 'f')).ok());
  }
  const auto put = Submit({Operation::Kind::kPut, AsBytes("k"), AsBytes("v")});
  engine_->Append();
  log_.MakeAllDurable();  // and the engine does not poll
  for (int i = 0; i < 10; ++i) {
    const auto any = cleaner_->Poll();
    ASSERT_TRUE(any.ok()) << any.status();
    engine_->Append();
  }
  log_.MakeAllDurable();
  engine_->Poll();
  EXPECT_TRUE(put->ok());
  const uint64_t before = log_.free_bytes();
  const auto ended = cleaner_->Poll();
  ASSERT_TRUE(ended.ok() && *ended);
  EXPECT_GT(log_.free_bytes(), before);
  EXPECT_EQ(Get("k"), "v");
  Open();
  EXPECT_EQ(Get("k"), "v");
}

// CLN1: a step whose copies the log did not take begins again at the head.
TEST_F(StoreCleanerTest, StepThatTheLogRefusesBeginsAgain) {
  ASSERT_TRUE(Put("k", "v").ok());
  FillUntilDue();
  for (const absl::Status& refusal :
       {absl::ResourceExhaustedError("no room, says the test"),
        absl::DeadlineExceededError("not now, says the test")}) {
    const auto begun = cleaner_->Poll();
    ASSERT_TRUE(begun.ok() && *begun);
    log_.next_append = refusal;
    Settle();
    log_.next_append = absl::OkStatus();
    EXPECT_EQ(cleaner_->Poll().status(), refusal);
    EXPECT_FALSE(cleaner_->is_busy());
  }
  ASSERT_NO_FATAL_FAILURE(Clean());
  EXPECT_EQ(Get("k"), "v");
  Open();
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(StoreCleanerTest, StepThatCannotReadOnBeginsAgain) {
  ASSERT_TRUE(Put("k", "v").ok());
  FillUntilDue();
  log_.reads_until_failure = 3;
  EXPECT_EQ(cleaner_->Poll().status().code(), absl::StatusCode::kDataLoss);
  log_.reads_until_failure = -1;
  Settle();
  ASSERT_NO_FATAL_FAILURE(Clean());
  EXPECT_EQ(Get("k"), "v");
  Open();
  EXPECT_EQ(Get("k"), "v");
}

TEST_F(StoreCleanerTest, FailureOfTheLogIsTold) {
  ASSERT_TRUE(Put("k", "v").ok());
  FillUntilDue();
  const absl::Status lost = absl::AbortedError("another primary");
  const auto begun = cleaner_->Poll();
  ASSERT_TRUE(begun.ok() && *begun);
  engine_->Append();
  log_.Fail(lost);
  engine_->Poll();
  EXPECT_EQ(engine_->status(), lost);
  EXPECT_EQ(cleaner_->Poll().status(), lost);
  EXPECT_EQ(cleaner_->Poll().status(), lost);
}

// ENG7, ROM2. A ring of live objects is not copied for ever, deletions have
// room, and what they freed takes puts again.
TEST_F(StoreCleanerTest, FullStoreRefusesPutsAndTakesDeletions) {
  for (const size_t value_bytes : {1U, 200U, 5'000U}) {
    const std::string value(value_bytes, 'v');
    absl::StatusOr<Outcome> put = Outcome();
    int keys = 0;
    while (put.ok() && keys < 100'000) {
      put = Put(absl::StrCat("key ", ++keys), value);
      ASSERT_NO_FATAL_FAILURE(Clean());
    }
    EXPECT_EQ(put.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(put.status().message()),
                HasSubstr("the store is full"));
    EXPECT_GT(engine_->live_bytes(), kRing * 3 / 4) << value_bytes;
    EXPECT_EQ(All().size(), static_cast<size_t>(keys) - 1);
    // The bytes there may change.
    EXPECT_TRUE(Put("key 1", value).ok());
    for (int i = 1; i < keys; ++i) {
      const auto deleted = Delete(absl::StrCat("key ", i));
      ASSERT_TRUE(deleted.ok()) << deleted.status() << ", " << i;
      ASSERT_NO_FATAL_FAILURE(Clean());
    }
    EXPECT_EQ(engine_->live_bytes(), 0U);
  }
}

// Formula: u / x copies for each byte that is written, at x of the ring in use
// when cleaning begins (docs/design/object_store.md#cleaning).
TEST_F(StoreCleanerTest, WriteAmplificationIsThatOfTheFormula) {
  // A half of the ring is live; uniform updates.
  Random random(34);
  const std::string value(88, 'v');
  const uint64_t keys = kRing / 2 / 192;  // a record of one object: 192 bytes
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(Put(absl::StrCat("key ", 1'000 + i), value).ok());
    ASSERT_NO_FATAL_FAILURE(Clean());
  }
  const uint64_t from = log_.record(log_.records() - 1).offset.value;
  uint64_t puts = 0;
  while (log_.record(log_.records() - 1).offset.value < from + 20 * kRing) {
    ASSERT_TRUE(
        Put(absl::StrCat("key ", 1'000 + random.Next() % keys), value).ok());
    ++puts;
    ASSERT_NO_FATAL_FAILURE(Clean());
  }
  const double amplification = 20.0 * kRing / static_cast<double>(puts * 192);
  RecordProperty("amplification", absl::StrCat(amplification));
  // Copies share records, so they are smaller than what they copy.
  EXPECT_LT(amplification, 1.88 * 1.1);
}

// --- Room -------------------------------------------------------------------

// ROM1, ROM2: for all rings from the smallest to the largest.
TEST(RoomTest, IsEnoughForAStepOfTheCleaner) {
  for (uint64_t ring = store::Room::kRingBytesMin; ring < uint64_t{1} << 44;
       ring += ring / 7 / 64 * 64) {
    const store::Room room(ring);
    const uint64_t record =
        room.objects_bytes_max() + store::Room::kRecordOverhead;
    // Copies of a step and of its last record, and a PAD (cleaner.h).
    ASSERT_GE(room.left_by_deletions(),
              3 * record + 2 * store::Room::kRecordOverhead)
        << ring;
    ASSERT_GT(room.left_by_puts(), room.left_by_deletions());
    // Not live and not free is garbage, beside what a refused record takes.
    ASSERT_GE(ring - room.live_bytes_max() - room.left_by_puts(),
              room.garbage_min());
  }
}

}  // namespace
}  // namespace alpheus::testing
