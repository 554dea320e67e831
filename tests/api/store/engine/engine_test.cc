// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
#include "api/store/engine/room.h"
#include "api/store/index/segment.h"
#include "api/store/record/object.h"
#include "api/store/record/store_record.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "tests/api/store/engine/memory_log.h"

namespace alpheus::testing {
namespace {

using store::Condition;
using store::Engine;
using store::Operation;
using store::Outcome;
using store::Version;
using ::testing::HasSubstr;

// The end of a request.
struct Answer {
  bool is_there = false;
  absl::Status status;
  std::vector<Outcome> outcomes;

  bool is_done() const {
    return is_there && status.ok() && outcomes[0].is_done;
  }
  Version version() const { return outcomes[0].version; }
};

class StoreEngineTest : public ::testing::Test {
 protected:
  StoreEngineTest() { Open(); }

  void Open() {
    engine_ = nullptr;
    memory_.clear();
    auto engine = Engine::Recover(log_, OptionsOf());
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  Engine::Options OptionsOf() {
    return {.allocate =
                [this](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
              if (bytes > bytes_left_) {
                return absl::ResourceExhaustedError("no memory, says the test");
              }
              bytes_left_ -= bytes;
              auto* const memory = static_cast<std::byte*>(
                  std::aligned_alloc(store::Segment::kBucketBytes, bytes));
              memory_.emplace_back(memory);
              std::fill_n(memory, bytes, std::byte{0});
              return std::span(memory, bytes);
            },
            .hash_seed = 34};
  }

  Operation Put(std::string key, std::string value, Condition condition = {}) {
    return {Operation::Kind::kPut, Keep(std::move(key)), Keep(std::move(value)),
            condition};
  }
  Operation Delete(std::string key, Condition condition = {}) {
    return {.kind = Operation::Kind::kDelete,
            .key = Keep(std::move(key)),
            .condition = condition};
  }
  // Keys and values stay until their request is appended.
  std::span<const std::byte> Keep(std::string text) {
    return AsBytes(kept_.emplace_back(std::move(text)));
  }
  std::shared_ptr<Answer> Submit(const std::vector<Operation>& operations) {
    auto answer = std::make_shared<Answer>();
    engine_->Submit(operations, [answer](const absl::Status& status,
                                         const std::vector<Outcome>& outcomes) {
      EXPECT_FALSE(answer->is_there);
      *answer = {true, status, outcomes};
    });
    return answer;
  }
  // Carries out one request to its end.
  Answer Do(Operation operation) {
    const auto answer = Submit({operation});
    Settle();
    EXPECT_TRUE(answer->is_there);
    return *answer;
  }
  // Appends as a store does, but without this engine.
  void AppendObject(const store::Object& object) {
    constexpr size_t kHeader = store::kStoreRecordHeaderBytes;
    const auto appended =
        log_.Append(kHeader + EncodedBytes(object),
                    [&](RingOffset, std::span<std::byte> payload) {
                      store::EncodeStoreRecordHeader({.count = 1},
                                                     payload.first<kHeader>());
                      EncodeObject(object, payload.subspan(kHeader));
                    });
    ASSERT_TRUE(appended.ok()) << appended.status();
  }
  void Settle() {
    engine_->Append();
    log_.MakeAllDurable();
    log_.Confirm();
    engine_->Poll();
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
        EXPECT_TRUE(all.emplace(AsText(key), AsText(found.value)).second);
      });
    }
    return all;
  }

  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  size_t bytes_left_ = size_t{1} << 28;
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
  std::deque<std::string> kept_;
  static constexpr size_t kRing = size_t{1} << 22;
  MemoryLog log_{kRing};
  std::unique_ptr<Engine> engine_;
};

TEST_F(StoreEngineTest, PutGetDelete) {
  EXPECT_EQ(Get("k"), std::nullopt);
  const Answer put = Do(Put("k", "one"));
  EXPECT_TRUE(put.is_done());
  EXPECT_EQ(Get("k"), "one");
  EXPECT_EQ(engine_->Get(AsBytes("k"))->version, put.version());
  const Answer again = Do(Put("k", "two"));
  EXPECT_GT(again.version(), put.version());
  EXPECT_EQ(Get("k"), "two");
  EXPECT_TRUE(Do(Delete("k")).is_done());
  EXPECT_EQ(Get("k"), std::nullopt);
  EXPECT_EQ(engine_->size(), 0U);
  EXPECT_FALSE(Do(Delete("k")).is_done());
}

// ENG1, P-O1.
TEST_F(StoreEngineTest, NothingIsSeenOrAnsweredBeforeItIsDurable) {
  const auto first = Submit({Put("k", "one")});
  engine_->Append();
  const auto second = Submit({Put("k", "two")});
  engine_->Append();
  EXPECT_FALSE(engine_->Poll());
  EXPECT_EQ(Get("k"), std::nullopt);
  log_.MakeDurable(1);
  EXPECT_FALSE(first->is_there);
  EXPECT_TRUE(engine_->Poll());
  EXPECT_TRUE(first->is_done());
  EXPECT_FALSE(second->is_there);
  EXPECT_EQ(Get("k"), "one");
  log_.MakeDurable(2);
  engine_->Poll();
  EXPECT_EQ(Get("k"), "two");
  EXPECT_TRUE(engine_->is_idle());
}

TEST_F(StoreEngineTest, WhatIsSubmittedTogetherIsOneRecord) {
  std::vector<std::shared_ptr<Answer>> answers;
  for (const char* const key : {"a", "b", "c"}) {
    answers.push_back(Submit({Put(key, "v")}));
  }
  Settle();
  EXPECT_EQ(log_.records(), 1U);
  for (const auto& one : answers) EXPECT_TRUE(one->is_done());
  EXPECT_EQ(All().size(), 3U);
}

// So each can be copied in one step (ROM1 of room.h).
TEST_F(StoreEngineTest, RecordsAreNoLargerThanTheRingHasRoomFor) {
  const uint64_t most = store::Room(kRing).objects_bytes_max();
  const std::string value(most / 5, 'v');
  for (int i = 0; i < 8; ++i) Submit({Put(absl::StrCat("k", i), value)});
  Settle();
  EXPECT_EQ(log_.records(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE(log_.record(i).payload.size(),
              store::kStoreRecordHeaderBytes + most);
  }
  EXPECT_EQ(All().size(), 8U);
}

TEST_F(StoreEngineTest, RequestIsDoneWholeOrNotAtAll) {
  Do(Put("b", "old"));
  const auto refused =
      Submit({Put("a", "new"), Put("b", "new", {Condition::Kind::kAbsent})});
  Settle();
  ASSERT_TRUE(refused->is_there);
  EXPECT_FALSE(refused->outcomes[0].is_done);
  EXPECT_FALSE(refused->outcomes[1].is_done);
  EXPECT_EQ(All(), (std::map<std::string, std::string>{{"b", "old"}}));
  const auto done = Submit({Put("a", "new"), Put("b", "new"), Delete("c")});
  Settle();
  EXPECT_TRUE(done->outcomes[0].is_done);
  EXPECT_TRUE(done->outcomes[1].is_done);
  EXPECT_FALSE(done->outcomes[2].is_done);
  EXPECT_EQ(log_.records(), 2U);
  EXPECT_EQ(All(),
            (std::map<std::string, std::string>{{"a", "new"}, {"b", "new"}}));
}

// --- Conditions -------------------------------------------------------------

TEST_F(StoreEngineTest, ConditionsAreJudgedByTheNewestVersion) {
  const Condition absent{Condition::Kind::kAbsent};
  const Condition present{Condition::Kind::kPresent};
  EXPECT_FALSE(Do(Put("k", "v", present)).is_done());
  const Answer made = Do(Put("k", "v", absent));
  EXPECT_TRUE(made.is_done());
  const Answer exists = Do(Put("k", "w", absent));
  EXPECT_FALSE(exists.is_done());
  EXPECT_EQ(exists.version(), made.version());
  EXPECT_FALSE(
      Do(Put("k", "w", {Condition::Kind::kVersion, made.version() + 1}))
          .is_done());
  EXPECT_TRUE(
      Do(Put("k", "w", {Condition::Kind::kVersion, made.version()})).is_done());
  EXPECT_FALSE(
      Do(Delete("k", {Condition::Kind::kVersion, made.version()})).is_done());
  EXPECT_TRUE(Do(Put("new", "v", {Condition::Kind::kVersion, 0})).is_done());
  EXPECT_FALSE(Do(Put("new", "v", {Condition::Kind::kVersion, 0})).is_done());
}

// In one record, the second request sees the first one.
TEST_F(StoreEngineTest, ConditionsSeeWhatIsNotAppendedYet) {
  const auto first = Submit({Put("k", "v", {Condition::Kind::kAbsent})});
  const auto second = Submit({Put("k", "w", {Condition::Kind::kAbsent})});
  const auto third = Submit({Delete("k")});
  const auto fourth = Submit({Put("k", "x", {Condition::Kind::kAbsent})});
  Settle();
  EXPECT_TRUE(first->is_done());
  EXPECT_FALSE(second->is_done());
  EXPECT_EQ(second->version(), first->version());
  EXPECT_TRUE(third->is_done());
  EXPECT_TRUE(fourth->is_done());
  EXPECT_EQ(Get("k"), "x");
}

// ENG3, P-E20: its answer would tell of a put that a crash may take back.
TEST_F(StoreEngineTest, AnswerWaitsForWhatItWasJudgedBy) {
  const auto put = Submit({Put("k", "v")});
  engine_->Append();
  const auto refused = Submit({Put("k", "w", {Condition::Kind::kAbsent})});
  engine_->Append();
  log_.Confirm();
  engine_->Poll();
  EXPECT_FALSE(refused->is_there);
  log_.MakeAllDurable();
  engine_->Poll();
  EXPECT_TRUE(refused->is_there);
  EXPECT_FALSE(refused->is_done());
}

// ENG3: a primary that was overtaken would answer by an old table.
TEST_F(StoreEngineTest, AnswerThatAppendsNothingIsConfirmed) {
  Do(Put("k", "v"));
  const int before = log_.confirmations;
  const auto refused = Submit({Put("k", "w", {Condition::Kind::kAbsent})});
  const auto nothing = Submit({Delete("other")});
  engine_->Append();
  engine_->Poll();
  EXPECT_FALSE(refused->is_there);
  EXPECT_FALSE(nothing->is_there);
  EXPECT_EQ(log_.confirmations, before + 1);
  log_.Confirm();
  engine_->Poll();
  EXPECT_TRUE(refused->is_there);
  EXPECT_TRUE(nothing->is_there);
}

// ENG4: what a client changes after it has asked changes nothing.
TEST_F(StoreEngineTest, KeysAreReadOnce) {
  std::string key = "before";
  const auto put =
      Submit({{Operation::Kind::kPut, AsBytes(key), AsBytes("v")}});
  key = "behind";
  Settle();
  EXPECT_TRUE(put->is_done());
  EXPECT_EQ(All(), (std::map<std::string, std::string>{{"before", "v"}}));
  EXPECT_EQ(Get("before"), "v");
  Open();
  EXPECT_EQ(Get("before"), "v");
}

// --- Errors -----------------------------------------------------------------

TEST_F(StoreEngineTest, BadRequestsAreRefused) {
  const auto expect_refused = [&](std::vector<Operation> operations,
                                  const char* why) {
    const auto answer = Submit(operations);
    ASSERT_TRUE(answer->is_there);
    EXPECT_EQ(answer->status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(answer->status.message()), HasSubstr(why));
  };
  const std::string long_key(65'536, 'k');
  const uint64_t most = store::Room(kRing).objects_bytes_max();
  const std::string large(most, 'v');
  expect_refused({}, "without an operation");
  expect_refused({Put("", "v")}, "a key of 0 bytes");
  expect_refused({Put(long_key, "v")}, "a key of 65536 bytes");
  expect_refused({Put("k", "v"), Delete("k")}, "two operations on one key");
  expect_refused({Put("k", large)}, "a 64th of its ring");
  expect_refused({Put("k", std::string(2 * most, 'v'))}, "a 64th of its ring");
  expect_refused(
      {Put("a", large.substr(most / 2)), Put("b", large.substr(most / 2))},
      "a 64th of its ring");
  Settle();
  EXPECT_EQ(log_.records(), 0U);
}

TEST_F(StoreEngineTest, RequestsOfARecordThatWasNotWrittenFailAndLeaveNothing) {
  Do(Put("there", "v"));
  log_.next_append = absl::ResourceExhaustedError("the ring is full");
  const auto put = Submit({Put("k", "v")});
  const auto by_it = Submit({Put("k", "w", {Condition::Kind::kAbsent})});
  const auto apart = Submit({Put("there", "w", {Condition::Kind::kAbsent})});
  Settle();
  EXPECT_EQ(put->status, log_.next_append);
  EXPECT_EQ(by_it->status, log_.next_append);
  EXPECT_TRUE(apart->is_there && apart->status.ok());
  EXPECT_FALSE(apart->is_done());
  log_.next_append = absl::OkStatus();
  EXPECT_TRUE(Do(Put("k", "x", {Condition::Kind::kAbsent})).is_done());
}

TEST_F(StoreEngineTest, FailureOfTheLogLeavesOutcomesUnknown) {
  Do(Put("there", "v"));
  const auto put = Submit({Put("k", "v")});
  const auto refused = Submit({Put("there", "w", {Condition::Kind::kAbsent})});
  engine_->Append();
  const auto later = Submit({Put("k", "w")});
  const absl::Status lost = absl::AbortedError("another primary");
  log_.Fail(lost);
  engine_->Poll();
  EXPECT_EQ(put->status, lost);
  EXPECT_EQ(refused->status, lost);
  EXPECT_EQ(later->status, lost);
  EXPECT_EQ(Submit({Put("k", "w")})->status, lost);
  EXPECT_TRUE(engine_->is_idle());
  EXPECT_EQ(Get("k"), std::nullopt);
}

TEST_F(StoreEngineTest, FailureToForceIsTheLogs) {
  log_.next_force = absl::UnavailableError("the medium failed");
  const auto put = Submit({Put("k", "v")});
  engine_->Append();
  engine_->Poll();
  EXPECT_EQ(put->status, log_.next_force);
  EXPECT_EQ(Get("k"), std::nullopt);
}

// A put that is durable is never answered as if it could be seen.
TEST_F(StoreEngineTest, WithoutMemoryForTheIndexTheStoreFails) {
  bytes_left_ = 0;
  std::shared_ptr<Answer> last;
  int keys = 0;
  do {
    last = Submit({Put(absl::StrCat("key ", ++keys), "v")});
    Settle();
  } while (last->status.ok() && keys < 100'000);
  EXPECT_EQ(last->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Submit({Put("k", "v")})->status, last->status);
  // With memory it comes back, the last one included.
  bytes_left_ = size_t{1} << 28;
  Open();
  EXPECT_EQ(engine_->size(), static_cast<size_t>(keys));
}

// --- Recovery ---------------------------------------------------------------

TEST_F(StoreEngineTest, RecordsOfOthersAreRefused) {
  const auto appended =
      log_.Append(20, [](RingOffset, std::span<std::byte> all) {
        std::fill(all.begin(), all.end(), std::byte{7});
      });
  ASSERT_TRUE(appended.ok());
  const auto engine = Engine::Recover(log_, OptionsOf());
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("record 1: "));
}

TEST_F(StoreEngineTest, ObjectsOfALaterStoreAreRefused) {
  const store::Object expires{
      .key = AsBytes("k"), .value = AsBytes("v"), .expires_ns = 5};
  AppendObject(expires);
  EXPECT_EQ(Engine::Recover(log_, OptionsOf()).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(StoreEngineTest, SmallRingIsRefused) {
  MemoryLog small(store::Room::kRingBytesMin - 64);
  const auto engine = Engine::Recover(small, OptionsOf());
  EXPECT_EQ(engine.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(engine.status().message()),
              HasSubstr("needs a log of 524288"));
}

// ENG7: what puts may not use, deletions may.
TEST_F(StoreEngineTest, PutsLeaveRoomForDeletions) {
  Do(Put("k", "v"));
  const std::string value(30'000, 'v');
  Answer last;
  int puts = 0;
  do {
    last = Do(Put("again", value));
    ++puts;
  } while (last.status.ok() && puts < 1'000);
  EXPECT_EQ(last.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(last.status.message()), HasSubstr("must be cleaned"));
  EXPECT_GE(log_.free_bytes(), store::Room(kRing).left_by_puts());
  EXPECT_TRUE(Do(Delete("k")).is_done());
  // One of several, refused alone; the others are done.
  const auto put = Submit({Put("k", value)});
  const auto deletion = Submit({Delete("again")});
  Settle();
  EXPECT_EQ(put->status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(deletion->is_done());
}

TEST_F(StoreEngineTest, DeletionsLeaveRoomForTheCleaner) {
  const std::string long_key(30'000, 'k');
  for (int i = 0; i < 120; ++i) Do(Put(absl::StrCat(long_key, i), ""));
  Answer last;
  int deletions = 0;
  do {
    last = Do(Delete(absl::StrCat(long_key, deletions)));
    ++deletions;
  } while (last.status.ok() && deletions < 120);
  EXPECT_EQ(last.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_GT(deletions, 1);
  EXPECT_GE(log_.free_bytes(), store::Room(kRing).left_by_deletions());
}

// P-E16, ENG5: an older version that lies behind a newer one is not shown.
TEST_F(StoreEngineTest, HigherVersionWinsOverALaterPlace) {
  const Answer first = Do(Put("k", "old"));
  Do(Put("k", "new"));
  const store::Object copy{.key = AsBytes("k"),
                           .value = AsBytes("old"),
                           .copied_version = first.version()};
  const store::Object moved{
      .key = AsBytes("k"),
      .value = AsBytes("new"),
      .copied_version = engine_->Get(AsBytes("k"))->version};
  AppendObject(copy);
  Open();
  EXPECT_EQ(Get("k"), "new");
  const auto before = engine_->Get(AsBytes("k"));
  AppendObject(moved);
  Open();
  const auto after = engine_->Get(AsBytes("k"));
  EXPECT_EQ(after->version, before->version);
  EXPECT_NE(after->value.data(), before->value.data());
}

// Places are known modulo 16 TiB, in a ring whose size does not divide that.
TEST(StoreEnginePlacesTest, ObjectsAreFoundOnceTheLogIsLong) {
  constexpr size_t kRing = 3 * 262'144;
  const uint64_t long_after = (uint64_t{1} << 44) / kRing * kRing;
  MemoryLog log(kRing, long_after);
  std::vector<std::byte> memory(size_t{1} << 22);
  size_t used = 0;
  const auto engine = Engine::Recover(
      log,
      {.allocate = [&](size_t bytes) -> absl::StatusOr<std::span<std::byte>> {
        const auto address = reinterpret_cast<uintptr_t>(memory.data() + used);
        used += (64 - address % 64) % 64;
        const auto part = std::span(memory).subspan(used, bytes);
        used += bytes;
        return part;
      }});
  ASSERT_TRUE(engine.ok()) << engine.status();
  for (int i = 0; i < 1'000; ++i) {
    const std::string key = absl::StrCat("key ", i);
    (*engine)->Submit({{.key = AsBytes(key), .value = AsBytes(key)}},
                      [](const auto&, const auto&) {});
    (*engine)->Append();
    log.MakeAllDurable();
    (*engine)->Poll();
  }
  for (int i = 0; i < 1'000; ++i) {
    const std::string key = absl::StrCat("key ", i);
    const auto found = (*engine)->Get(AsBytes(key));
    ASSERT_TRUE(found.has_value()) << i;
    EXPECT_EQ(AsText(found->value), key);
  }
}

// Every answer that was given holds after a crash, and so does what was read;
// what was not answered may be there or not, in the order of the log.
TEST_F(StoreEngineTest, CrashesAtAnyPointKeepWhatWasAnswered) {
  Random random(34);
  std::map<std::string, std::string> durable;  // as answered
  for (int round = 0; round < 300; ++round) {
    std::vector<std::shared_ptr<Answer>> answers;
    std::vector<std::vector<std::pair<std::string, std::optional<std::string>>>>
        asked;
    const size_t before = log_.records();
    for (uint64_t i = random.Next() % 12; i > 0; --i) {
      asked.emplace_back();
      std::vector<Operation> operations;
      for (uint64_t j = 1 + random.Next() % 3; j > 0; --j) {
        const std::string key =
            absl::StrCat("key ", random.Next() % 40, ".", j);
        if (random.Next() % 3 == 0) {
          operations.push_back(Delete(key));
          asked.back().emplace_back(key, std::nullopt);
        } else {
          const std::string value = absl::StrCat("value ", random.Next());
          operations.push_back(Put(key, value));
          asked.back().emplace_back(key, value);
        }
      }
      answers.push_back(Submit(operations));
      if (random.Next() % 3 == 0) engine_->Append();
    }
    engine_->Append();
    const size_t durable_records =
        before + random.Next() % (log_.records() - before + 1);
    log_.MakeDurable(durable_records);
    log_.Confirm();
    engine_->Poll();
    // Each is answered in turn, up to the durable end.
    std::map<std::string, std::string> expected = durable;
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i]->is_there) continue;
      for (const auto& [key, value] : asked[i]) {
        if (value) expected[key] = *value;
        if (!value) expected.erase(key);
      }
    }
    ASSERT_EQ(All(), expected) << "round " << round;
    log_.Crash(log_.durable());
    Open();
    ASSERT_EQ(All(), expected) << "round " << round;
    durable = expected;
  }
}

}  // namespace
}  // namespace alpheus::testing
