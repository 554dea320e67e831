// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/cleaner.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/api/store/engine/memory_log.h"

namespace alpheus::testing {
namespace {

using store::Cleaner;
using store::Engine;
using store::Operation;
using store::Outcome;
using store::Version;

// A store on a small ring, whose objects take most of it.
class StoreCleanerTest : public ::testing::Test {
 protected:
  static constexpr size_t kRing = size_t{128} << 10;

  StoreCleanerTest() { Open(); }

  void Open() {
    cleaner_ = nullptr;
    engine_ = nullptr;
    used_ = 0;
    auto engine = Engine::Recover(
        log_,
        {.allocate = [this](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
           const auto at = reinterpret_cast<uintptr_t>(memory_.data() + used_);
           used_ += (64 - at % 64) % 64;
           const auto part = std::span(memory_).subspan(used_, bytes);
           used_ += bytes;
           std::fill(part.begin(), part.end(), std::byte{0});
           return part;
         }});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    cleaner_ = std::make_unique<Cleaner>(log_, *engine_,
                                         Cleaner::Options{.step_bytes = 4096});
  }

  // Returns the outcome once it is there; nothing is answered before
  // `make_durable`.
  absl::StatusOr<Outcome> Do(const Operation& operation) {
    absl::StatusOr<Outcome> answer = absl::UnknownError("no answer");
    engine_->Submit({operation},
                    [&answer](const absl::Status& status,
                              const std::vector<Outcome>& outcomes) {
                      if (status.ok()) answer = outcomes.front();
                      if (!status.ok()) answer = status;
                    });
    Settle();
    return answer;
  }
  absl::StatusOr<Outcome> Put(const std::string& key,
                              const std::string& value) {
    return Do({Operation::Kind::kPut, AsBytes(key), AsBytes(value)});
  }
  absl::StatusOr<Outcome> Delete(const std::string& key) {
    return Do({.kind = Operation::Kind::kDelete, .key = AsBytes(key)});
  }
  void Settle() {
    engine_->Append();
    log_.MakeAllDurable();
    log_.Confirm();
    engine_->Poll();
  }
  // Cleans until there is nothing to do.
  void Clean() {
    for (;;) {
      const absl::StatusOr<bool> any = cleaner_->Poll();
      ASSERT_TRUE(any.ok()) << any.status();
      if (!*any) return;
      Settle();
    }
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
      const std::string value(random.Next() % 200, 'a' + i % 26);
      const auto put = Put(key, value);
      ASSERT_TRUE(put.ok()) << put.status() << ", round " << i;
      expected[key] = value;
    }
    Clean();
    if (random.Next() % 500 != 0) continue;
    ASSERT_EQ(All(), expected) << "round " << i;
    log_.Crash(log_.durable());
    Open();
    ASSERT_EQ(All(), expected) << "round " << i << ", recovered";
  }
  ASSERT_EQ(All(), expected);
  EXPECT_GT(log_.record(log_.records() - 1).offset.value, 10 * kRing);
}

TEST_F(StoreCleanerTest, VersionsStay) {
  const auto put = Put("stays", "v");
  ASSERT_TRUE(put.ok());
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(Put("changes", std::string(100, 'v')).ok());
    Clean();
  }
  const auto found = engine_->Get(AsBytes("stays"));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->version, put->version);
  Open();
  EXPECT_EQ(engine_->Get(AsBytes("stays"))->version, put->version);
}

// P-E16: the copy must not lie behind a deletion that is not durable yet, and
// the head must not pass the original before that is.
TEST_F(StoreCleanerTest, NewerVersionThatIsNotDurableStopsTheHead) {
  ASSERT_TRUE(Put("k", "old").ok());
  while (log_.free_bytes() > kRing * 3 / 10) {
    ASSERT_TRUE(Put("filler", std::string(500, 'f')).ok());
  }
  const uint64_t before = log_.free_bytes();
  bool is_answered = false;
  engine_->Submit({{.kind = Operation::Kind::kDelete, .key = AsBytes("k")}},
                  [&](const auto&, const auto&) { is_answered = true; });
  engine_->Append();
  const auto begun = cleaner_->Poll();
  ASSERT_TRUE(begun.ok() && *begun);
  engine_->Append();
  log_.Confirm();
  engine_->Poll();
  const auto waits = cleaner_->Poll();
  ASSERT_TRUE(waits.ok());
  EXPECT_FALSE(*waits);
  EXPECT_LE(log_.free_bytes(), before);
  EXPECT_EQ(AsText(engine_->Get(AsBytes("k"))->value), "old");
  log_.MakeAllDurable();
  engine_->Poll();
  EXPECT_TRUE(is_answered);
  Clean();
  EXPECT_GT(log_.free_bytes(), before);
  EXPECT_EQ(engine_->Get(AsBytes("k")), std::nullopt);
  Open();
  EXPECT_EQ(engine_->Get(AsBytes("k")), std::nullopt);
}

// A ring of live objects is not copied for ever, and deletions have room.
TEST_F(StoreCleanerTest, FullStoreRefusesPutsAndTakesDeletions) {
  absl::Status put;
  int keys = 0;
  for (; put.ok() && keys < 10'000; ++keys) {
    put = Put(absl::StrCat("key ", keys), std::string(200, 'v')).status();
    Clean();
  }
  EXPECT_EQ(put.code(), absl::StatusCode::kResourceExhausted) << put;
  EXPECT_GT(engine_->live_bytes(), kRing / 2);
  for (int i = 0; i < keys / 2; ++i) {
    ASSERT_TRUE(Delete(absl::StrCat("key ", i)).ok());
    Clean();
  }
  EXPECT_TRUE(Put("again", "v").ok());
}

// Formula: u / x copies for each byte that is written, at u of the ring live
// (docs/design/object_store.md#cleaning).
TEST_F(StoreCleanerTest, WriteAmplificationIsThatOfTheFormula) {
  // 0.5 of the ring is live; uniform updates.
  Random random(34);
  const std::string value(88, 'v');
  const uint64_t keys = kRing / 2 / 192;  // a record of one object: 192 bytes
  for (uint64_t i = 0; i < keys; ++i) {
    ASSERT_TRUE(Put(absl::StrCat("key ", 1'000 + i), value).ok());
    Clean();
  }
  const uint64_t from = log_.record(log_.records() - 1).offset.value;
  uint64_t puts = 0;
  while (log_.record(log_.records() - 1).offset.value < from + 40 * kRing) {
    ASSERT_TRUE(
        Put(absl::StrCat("key ", 1'000 + random.Next() % keys), value).ok());
    ++puts;
    Clean();
  }
  const double amplification = 40.0 * kRing / static_cast<double>(puts * 192);
  RecordProperty("amplification", absl::StrCat(amplification));
  // Copies share records, so they are smaller than what they copy.
  EXPECT_LT(amplification, 1.88 * 1.1);
}

}  // namespace
}  // namespace alpheus::testing
