// SPDX-License-Identifier: Apache-2.0
#include "api/store/local/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

using store::Condition;
using store::Store;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    const auto id = Log::Format({path_, 1 << 20});
    EXPECT_TRUE(id.ok()) << id.status();
    Open();
  }
  void Open() {
    store_.reset();
    log_.reset();
    auto log = Log::Open({.path = path_});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    auto store = Store::Open(*log_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  std::optional<std::string> Get(const std::string& key) {
    const auto value = store_->Get(key);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok() || !value->has_value()) return std::nullopt;
    return (*value)->bytes;
  }
  std::map<std::string, std::string> All() {
    std::map<std::string, std::string> all;
    uint64_t cursor = 0;
    do {
      const auto page = store_->Scan(cursor);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const auto& [key, value] : page->entries) all[key] = value.bytes;
      cursor = page->next;
    } while (cursor != 0);
    return all;
  }

  TempDirectory directory_;
  const std::string path_ = directory_.File("objects");
  std::unique_ptr<Log> log_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, ObjectsAreThereAgainAfterARestart) {
  const auto one = store_->Put("a", "one");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(store_->Put("b", "two").ok());
  EXPECT_TRUE(store_->Put("a", "three").ok());
  EXPECT_TRUE(store_->Delete("b").ok());
  const auto before = store_->Get("a");
  Open();
  EXPECT_EQ(All(), (std::map<std::string, std::string>{{"a", "three"}}));
  const auto after = store_->Get("a");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ((*after)->version, (*before)->version);
  EXPECT_GT((*after)->version, one->version);
}

TEST_F(StoreTest, AnswersWithoutARecordComeToo) {
  ASSERT_TRUE(store_->Put("a", "one").ok());
  const auto refused = store_->Put("a", "two", {Condition::Kind::kAbsent, 0});
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->is_done);
  const auto nothing = store_->Delete("b");
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_FALSE(nothing->is_done);
  EXPECT_EQ(Get("a"), "one");
}

TEST_F(StoreTest, ThreadsThatWriteAtOnceLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kPuts = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kPuts; ++i) {
        const std::string key = absl::StrCat("key ", t, ".", i % 50);
        const auto put = store_->Put(key, absl::StrCat(i));
        EXPECT_TRUE(put.ok() && put->is_done) << put.status();
        EXPECT_EQ(Get(key), absl::StrCat(i));
      }
    });
  }
  for (std::thread& one : threads) one.join();
  const auto before = All();
  EXPECT_EQ(before.size(), 400U);
  Open();
  EXPECT_EQ(All(), before);
}

// One of many that try to make a key does.
TEST_F(StoreTest, ConditionIsJudgedForOneAtATime) {
  std::vector<std::thread> threads;
  std::atomic<int> made{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, &made] {
      for (int i = 0; i < 50; ++i) {
        const auto put = store_->Put(absl::StrCat("key ", i), "v",
                                     {Condition::Kind::kAbsent, 0});
        EXPECT_TRUE(put.ok()) << put.status();
        if (put->is_done) ++made;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(made, 50);
}

TEST_F(StoreTest, FullLogRefusesAndLosesNothing) {
  const std::string value(10'000, 'v');
  std::map<std::string, std::string> expected;
  absl::Status put;
  for (int i = 0; put.ok() && i < 1'000; ++i) {
    const std::string key = absl::StrCat("key ", i);
    put = store_->Put(key, value).status();
    if (put.ok()) expected[key] = value;
  }
  EXPECT_EQ(put.code(), absl::StatusCode::kResourceExhausted) << put;
  EXPECT_EQ(All(), expected);
  Open();
  EXPECT_EQ(All(), expected);
}

// Writes clean the log as they go, whoever waits for whom.
TEST_F(StoreTest, LogGoesRoundUnderManyThreads) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 1'500; ++i) {
        const std::string key = absl::StrCat("key ", t, ".", i % 40);
        const std::string value(1'000 + i % 500, static_cast<char>('a' + t));
        const auto put = store_->Put(key, value);
        ASSERT_TRUE(put.ok()) << put.status();
        ASSERT_EQ(Get(key), value);
        if (i % 7 == 0) {
          ASSERT_TRUE(store_->Delete(key).ok());
        }
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_GT(log_->head_lsn(), Lsn(1'000));
  const auto before = All();
  Open();
  EXPECT_EQ(All(), before);
}

TEST_F(StoreTest, FullStoreTakesPutsAgainOnceObjectsAreDeleted) {
  const std::string value(10'000, 'v');
  int keys = 0;
  while (store_->Put(absl::StrCat("key ", keys), value).ok()) ++keys;
  const auto changed = store_->Put("key 0", value);
  EXPECT_TRUE(changed.ok()) << changed.status();
  for (int i = 0; i < keys; ++i) {
    const auto deleted = store_->Delete(absl::StrCat("key ", i));
    ASSERT_TRUE(deleted.ok()) << deleted.status();
  }
  EXPECT_EQ(All().size(), 0U);
  for (int i = 0; i < keys; ++i) {
    ASSERT_TRUE(store_->Put(absl::StrCat("again ", i), value).ok()) << i;
  }
}

TEST_F(StoreTest, CallsOnALogThatIsClosedFail) {
  ASSERT_TRUE(store_->Put("k", "v").ok());
  ASSERT_TRUE(log_->Close().ok());
  EXPECT_EQ(store_->Put("k", "w").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->Get("k").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->Scan(0).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, LogOfSomebodyElseIsRefused) {
  ASSERT_TRUE(log_->Append("not an object").ok());
  store_.reset();
  log_.reset();
  const auto log = Log::Open({.path = path_});
  ASSERT_TRUE(log.ok()) << log.status();
  const auto store = Store::Open(**log);
  EXPECT_EQ(store.status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace alpheus::testing
