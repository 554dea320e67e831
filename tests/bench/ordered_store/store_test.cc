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

#include "bench/harness/region_file.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/ordered_store/alpheus_commit_log.h"
#include "bench/ordered_store/shared_buffer_log.h"
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

// The same for the peer, whose groups are whole only now and then.
TEST(StoreTest, StoreRebuiltFromASharedBufferLogIsTheSame) {
  std::vector<std::byte> memory(4 << 20);
  SharedBufferLog log(
      memory,
      {.group = 128, .workers = kThreads, .change_bytes = sizeof(Change)});
  Store store;
  store.Load(kLoaded);
  UpdateByThreads(store, log);
  ASSERT_TRUE(log.CommitAll().ok());
  EXPECT_EQ(log.durable(), kChanges);
  Store rebuilt;
  rebuilt.Load(kLoaded);
  EXPECT_EQ(
      SharedBufferLog::Replay(memory, sizeof(Change), ReplayInto(rebuilt)),
      kChanges);
  EXPECT_TRUE(AreEqual(store, rebuilt));
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
