// SPDX-License-Identifier: Apache-2.0
// Is the store that is rebuilt from its log the store that there was?
#include "bench/ordered_store/store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/local/alpheus_candidate.h"
#include "bench/local/region_file.h"
#include "bench/ordered_store/alpheus_commit_log.h"
#include "bench/ordered_store/group_commit_log.h"
#include "bench/ordered_store/zipfian.h"
#include "log/base/random.h"

namespace alpheus::bench::ordered_store {
namespace {

constexpr uint64_t kLoaded = 200;
constexpr int kThreads = 3;
constexpr uint64_t kUpdatesOfThread = 2000;
constexpr uint64_t kChanges = kThreads * kUpdatesOfThread;

Workload SmallWorkload() {
  return {.folder = "/dev/shm",
          .ring_bytes = 2 << 20,
          .payload_bytes = sizeof(Change),
          .workers = kThreads};
}

// Keys by lot, half of them new ones.
void UpdateByThreads(Store& store, CommitLog& log) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<uint64_t>(t) + 1);
      for (uint64_t i = 0; i < kUpdatesOfThread; ++i) {
        const auto place = store.Update(t, random.Below(2 * kLoaded), log);
        ASSERT_TRUE(place.ok()) << place.status();
        ASSERT_TRUE(log.Commit(t, *place).ok());
      }
    });
  }
}

// Replays into a store that was loaded as the first one; false: a change does
// not follow.
CommitLog::Visit ReplayInto(Store& store) {
  return [&store](std::span<const std::byte> change) {
    EXPECT_EQ(store.Replay(change), absl::OkStatus());
  };
}

TEST(StoreTest, LoadGivesEachKeyOnce) {
  Store store;
  store.Load(kLoaded);
  uint64_t next = 0;
  store.map().ForEach(
      [&](const Record& record) { EXPECT_EQ(record.key, next++); });
  EXPECT_EQ(next, kLoaded);
}

TEST(StoreTest, EachChangeDependsOnTheValueBefore) {
  Store store;
  store.Load(1);
  Change before{};
  ASSERT_TRUE(store.Read(0, &before));
  std::vector<Value> seen = {before.value};
  for (int i = 0; i < 5; ++i) {
    store.UpdateUnlogged(0);
    Change now{};
    ASSERT_TRUE(store.Read(0, &now));
    for (const Value& value : seen) EXPECT_NE(now.value, value);
    seen.push_back(now.value);
  }
  EXPECT_FALSE(store.Read(1, &before));
}

TEST(StoreTest, ChangeThatIsNotTheNextOfItsKeyIsRefused) {
  Store store;
  const Change change{.key = 1, .changes = 2, .value = {}};
  const auto bytes = std::as_bytes(std::span(&change, 1));
  EXPECT_TRUE(absl::IsDataLoss(store.Replay(bytes)));
  EXPECT_TRUE(absl::IsDataLoss(store.Replay(bytes.first(8))));
}

// With each policy, from a log that was closed without order: what the process
// had forced is all there is.
TEST(StoreTest, StoreRebuiltFromAlpheusIsTheSame) {
  for (const bench::ForcePolicy& policy :
       {bench::ForcePolicy{}, bench::ForcePolicy{.frequency = 8},
        bench::ForcePolicy{.group = 128}}) {
    SCOPED_TRACE(CandidateName(policy));
    const Workload workload = SmallWorkload();
    const ScratchFile file(RegionFilePath(workload, "store-test"));
    Store store;
    store.Load(kLoaded);
    {
      auto made = MakeLog(file.path(), workload);
      ASSERT_TRUE(made.ok()) << made.status();
      AlpheusCommitLog log(std::shared_ptr<Log>(*std::move(made)), policy);
      UpdateByThreads(store, log);
      ASSERT_TRUE(log.CommitAll().ok());
    }
    LogOptions options;
    options.path = file.path();
    auto opened = Log::Open(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    Store rebuilt;
    rebuilt.Load(kLoaded);
    EXPECT_FALSE(AreEqual(store, rebuilt));
    const auto replayed =
        AlpheusCommitLog::Replay(**opened, ReplayInto(rebuilt));
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_EQ(*replayed, kChanges);
    EXPECT_TRUE(AreEqual(store, rebuilt));
    EXPECT_TRUE(rebuilt.map().IsSound());
  }
}

class GroupCommitLogTest : public ::testing::Test {
 protected:
  GroupCommitLogTest()
      : memory_(4 << 20), log_(memory_, /*group=*/128, kThreads) {}

  std::vector<std::byte> memory_;
  GroupCommitLog log_;
};

TEST_F(GroupCommitLogTest, StoreRebuiltFromItIsTheSame) {
  Store store;
  store.Load(kLoaded);
  UpdateByThreads(store, log_);
  ASSERT_TRUE(log_.CommitAll().ok());
  EXPECT_EQ(log_.durable(), kChanges);
  Store rebuilt;
  rebuilt.Load(kLoaded);
  EXPECT_EQ(GroupCommitLog::Replay(memory_, ReplayInto(rebuilt)), kChanges);
  EXPECT_TRUE(AreEqual(store, rebuilt));
}

// What is not sealed is gone, and no more than the bound: a prefix is left.
TEST_F(GroupCommitLogTest, ACrashTakesAtMostWhatTheBoundSays) {
  Store store;
  store.Load(kLoaded);
  UpdateByThreads(store, log_);
  Store rebuilt;
  rebuilt.Load(kLoaded);
  const uint64_t left = GroupCommitLog::Replay(memory_, ReplayInto(rebuilt));
  EXPECT_EQ(left, log_.durable());
  EXPECT_LE(kChanges - left, log_.ExposureBound(kThreads));
}

// A group of which one byte is missing is the end, and what is behind it, too.
TEST_F(GroupCommitLogTest, TornGroupIsTheEnd) {
  Store store;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(store.Update(0, 7, log_).ok());
    ASSERT_TRUE(log_.CommitAll().ok());
  }
  const auto ignore = [](std::span<const std::byte>) {};
  ASSERT_EQ(GroupCommitLog::Replay(memory_, ignore), 3u);
  // Each group here is a header, an entry and a change, in whole lines.
  constexpr size_t kGroupBytes = 128 + 64;
  memory_[kGroupBytes + 60] ^= std::byte{1};
  EXPECT_EQ(GroupCommitLog::Replay(memory_, ignore), 1u);
}

// What an earlier lap has left is not taken for what follows.
TEST_F(GroupCommitLogTest, EarlierLapsAreNotReplayed) {
  Store store;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(store.Update(0, 7, log_).ok());
    ASSERT_TRUE(log_.CommitAll().ok());
  }
  ASSERT_TRUE(log_.Reclaim().ok());
  ASSERT_TRUE(store.Update(0, 7, log_).ok());
  ASSERT_TRUE(log_.CommitAll().ok());
  std::vector<uint64_t> changes;
  GroupCommitLog::Replay(memory_, [&](std::span<const std::byte> bytes) {
    Change change{};
    std::memcpy(&change, bytes.data(), sizeof(change));
    changes.push_back(change.changes);
  });
  EXPECT_EQ(changes, std::vector<uint64_t>{4});
}

// Nothing is lost where it is full: what waits goes into the next lap.
TEST(FullGroupCommitLogTest, FullLogKeepsWhatItCouldNotSeal) {
  std::vector<std::byte> memory(4096);
  GroupCommitLog log(memory, /*group=*/4, /*workers=*/1);
  Store store;
  absl::Status status;
  uint64_t written = 0;
  while (status.ok()) {
    const auto place = store.Update(0, 7, log);
    ASSERT_TRUE(place.ok());
    written = *place;
    status = log.Commit(0, *place);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_LT(log.durable(), written);
  ASSERT_TRUE(log.Reclaim().ok());
  ASSERT_TRUE(log.CommitAll().ok());
  EXPECT_EQ(log.durable(), written);
}

// YCSB's skew: with 1,000 keys the most frequent one is asked for in 13 % of
// all cases (1 / zeta(1000, 0.99)), the second half as often.
TEST(ZipfianTest, FrequenciesAreThoseOfTheDistribution) {
  constexpr uint64_t kCount = 1000;
  constexpr uint64_t kDraws = 200'000;
  const Zipfian zipfian(kCount, kYcsbSkew);
  Random random(1);
  std::vector<uint64_t> counts(kCount);
  for (uint64_t i = 0; i < kDraws; ++i) ++counts.at(zipfian.NextRank(random));
  double zeta = 0;
  for (uint64_t i = 1; i <= kCount; ++i) {
    zeta += std::pow(1.0 / static_cast<double>(i), kYcsbSkew);
  }
  EXPECT_NEAR(static_cast<double>(counts[0]), kDraws / zeta,
              kDraws / zeta * 0.05);
  EXPECT_NEAR(static_cast<double>(counts[1]),
              kDraws / zeta / std::pow(2, kYcsbSkew), kDraws / zeta * 0.05);
  EXPECT_GT(counts[kCount - 1], 0u);
}

TEST(ZipfianTest, TheSameSeedDrawsTheSameKeys) {
  for (const double skew : {0.0, kYcsbSkew}) {
    const std::vector<uint64_t> keys = DrawKeys(3, 100, skew, 1000);
    EXPECT_EQ(keys, DrawKeys(3, 100, skew, 1000));
    EXPECT_NE(keys, DrawKeys(4, 100, skew, 1000));
    for (const uint64_t key : keys) EXPECT_LT(key, 100u);
  }
}

}  // namespace
}  // namespace alpheus::bench::ordered_store
