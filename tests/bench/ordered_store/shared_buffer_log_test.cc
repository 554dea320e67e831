// SPDX-License-Identifier: Apache-2.0
// Does the peer keep what it says is durable, in order? Else it would be no
// peer.
#include "bench/ordered_store/shared_buffer_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "bench/ordered_store/store_candidate.h"

namespace alpheus::bench::ordered_store {
namespace {

constexpr int kWriters = 3;
constexpr uint64_t kGroup = 4;
constexpr uint64_t kChangeBytes = sizeof(uint64_t);
constexpr uint64_t kRecordBytes = 16 + kChangeBytes;
constexpr SharedBufferLog::Shape kShape{
    .group = kGroup, .workers = kWriters, .change_bytes = kChangeBytes};

std::span<const std::byte> BytesOfPlace(const uint64_t& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::vector<uint64_t> ContentOf(std::span<const std::byte> memory) {
  std::vector<uint64_t> values;
  SharedBufferLog::Replay(memory, kChangeBytes,
                          [&](std::span<const std::byte> change) {
                            uint64_t value = 0;
                            std::memcpy(&value, change.data(), sizeof(value));
                            values.push_back(value);
                          });
  return values;
}

std::vector<uint64_t> PlacesUpTo(uint64_t last) {
  std::vector<uint64_t> values(last);
  std::iota(values.begin(), values.end(), 1);
  return values;
}

class SharedBufferLogTest : public ::testing::Test {
 protected:
  // Each change is its own place.
  void WriteNext(int worker = 0) {
    const uint64_t place = log_.Reserve(worker);
    log_.Fill(worker, place, BytesOfPlace(place));
    ASSERT_TRUE(log_.Commit(worker, place).ok());
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 16);
  SharedBufferLog log_{memory_, kShape};
};

// A group is brought into the memory when it is full, not before: what is
// durable is what a crash leaves.
TEST_F(SharedBufferLogTest, WhatIsDurableIsWhatTheMemoryHas) {
  for (uint64_t place = 1; place <= 10 * kGroup; ++place) {
    WriteNext();
    EXPECT_EQ(log_.durable(), place / kGroup * kGroup);
    EXPECT_EQ(ContentOf(memory_), PlacesUpTo(log_.durable()));
  }
}

// Workers write in turns, from different threads; each notes up to where it saw
// changes durable. All of that is there after a crash, in order.
TEST_F(SharedBufferLogTest, NothingIsAcknowledgedThatIsNotInTheMemory) {
  constexpr uint64_t kWritesOfThread = 2000;
  std::vector<std::byte> memory(kWriters * kWritesOfThread * kRecordBytes);
  SharedBufferLog log(memory, kShape);
  std::vector<uint64_t> acknowledged(kWriters);
  std::vector<uint64_t> exposed(kWriters);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kWriters; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; i < kWritesOfThread; ++i) {
          const uint64_t place = log.Reserve(t);
          log.Fill(t, place, BytesOfPlace(place));
          const uint64_t durable = log.durable();
          exposed[t] = std::max(exposed[t], place - std::min(place, durable));
          ASSERT_TRUE(log.Commit(t, place).ok());
          acknowledged[t] = log.durable();
        }
      });
    }
  }
  const uint64_t left = log.durable();
  EXPECT_LE(*std::ranges::max_element(acknowledged), left);
  EXPECT_LE(*std::ranges::max_element(exposed), log.ExposureBound(kWriters));
  EXPECT_LE(kWriters * kWritesOfThread - left, log.ExposureBound(kWriters));
  EXPECT_EQ(ContentOf(memory), PlacesUpTo(left));
}

// SBL1: the places behind one that is still being filled wait for it.
TEST_F(SharedBufferLogTest, PlaceThatIsBeingFilledHoldsBackThoseBehindIt) {
  WriteNext();
  const uint64_t place = log_.Reserve(1);
  for (uint64_t i = 0; i < kGroup; ++i) WriteNext();
  ASSERT_TRUE(log_.CommitAll().ok());
  EXPECT_EQ(log_.durable(), place - 1);
  EXPECT_EQ(ContentOf(memory_), PlacesUpTo(place - 1));
  log_.Fill(1, place, BytesOfPlace(place));
  ASSERT_TRUE(log_.CommitAll().ok());
  EXPECT_EQ(log_.durable(), place + kGroup);
  EXPECT_EQ(ContentOf(memory_), PlacesUpTo(place + kGroup));
}

// SBL2: one that is slow to fill lets the others go no further than two groups,
// and they go on when it is done.
TEST_F(SharedBufferLogTest, OthersWaitForASlowOneAfterTwoGroups) {
  const uint64_t place = log_.Reserve(1);
  for (uint64_t i = 2; i < 2 * kGroup; ++i) WriteNext();
  const uint64_t last = log_.Reserve(0);
  log_.Fill(0, last, BytesOfPlace(last));
  EXPECT_EQ(last - log_.durable(), 2 * kGroup);
  std::jthread waits([&] { EXPECT_TRUE(log_.Commit(0, last).ok()); });
  log_.Fill(1, place, BytesOfPlace(place));
  waits.join();
  EXPECT_GT(log_.durable() + 2 * kGroup, last);
  ASSERT_TRUE(log_.CommitAll().ok());
  EXPECT_EQ(ContentOf(memory_), PlacesUpTo(last));
}

// Each line of a flush in turn does not reach the medium. All that was durable
// before is left, and a prefix of the rest.
TEST_F(SharedBufferLogTest, TornFlushLeavesAPrefix) {
  constexpr size_t kLine = 64;
  for (uint64_t i = 0; i < kGroup; ++i) WriteNext();
  const std::vector<std::byte> before = memory_;
  for (uint64_t i = 0; i < kGroup; ++i) WriteNext();
  ASSERT_EQ(log_.durable(), 2 * kGroup);
  for (size_t line = 0; line < 2 * kGroup * kRecordBytes; line += kLine) {
    for (const bool is_lost_from_here : {false, true}) {
      std::vector<std::byte> torn = memory_;
      const size_t bytes = is_lost_from_here ? torn.size() - line : kLine;
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(line), bytes,
                  torn.begin() + static_cast<std::ptrdiff_t>(line));
      const std::vector<uint64_t> content = ContentOf(torn);
      EXPECT_GE(content.size(), kGroup);
      EXPECT_EQ(content, PlacesUpTo(content.size()));
    }
  }
}

// Records that an earlier lap has left are not taken for the next ones.
TEST_F(SharedBufferLogTest, EarlierLapsAreNotReplayed) {
  for (uint64_t i = 0; i < 3 * kGroup; ++i) WriteNext();
  ASSERT_TRUE(log_.Reclaim().ok());
  for (uint64_t i = 0; i < kGroup; ++i) WriteNext();
  std::vector<uint64_t> expected(kGroup);
  std::iota(expected.begin(), expected.end(), 3 * kGroup + 1);
  EXPECT_EQ(ContentOf(memory_), expected);
}

// Nothing is lost where it is full: what waits goes into the next lap.
TEST(FullSharedBufferLogTest, FullLogKeepsWhatItCouldNotFlush) {
  std::vector<std::byte> memory(3 * kGroup * kRecordBytes - 1);
  SharedBufferLog log(memory, kShape);
  uint64_t place = 0;
  const auto write_next = [&] {
    place = log.Reserve(0);
    log.Fill(0, place, BytesOfPlace(place));
    return log.Commit(0, place);
  };
  for (uint64_t i = 1; i < 3 * kGroup; ++i) ASSERT_TRUE(write_next().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(write_next()));
  EXPECT_TRUE(absl::IsResourceExhausted(log.CommitAll()));
  EXPECT_EQ(log.durable(), 2 * kGroup);
  ASSERT_TRUE(log.Reclaim().ok());
  ASSERT_TRUE(log.CommitAll().ok());
  EXPECT_EQ(log.durable(), place);
}

// The store makes room where its log is full, at a commit and at the last one.
TEST(FullSharedBufferLogTest, StoreMakesRoomWhereverItIsNeeded) {
  SharedBufferLog::Shape shape = kShape;
  shape.change_bytes = sizeof(Change);
  for (uint64_t updates = 1; updates <= 6 * kGroup; ++updates) {
    // Two groups, and not quite another one.
    std::vector<std::byte> memory((3 * kGroup - 1) * (16 + sizeof(Change)));
    Store store;
    store.Load(10);
    const KeysOfWorkers keys = {{1, 2, 3}};
    const auto log = std::make_shared<SharedBufferLog>(memory, shape);
    StoreCandidate candidate(store, log, keys);
    ASSERT_TRUE(candidate.Run(0, updates).ok());
    EXPECT_EQ(candidate.CommitAll(), absl::OkStatus());
    EXPECT_EQ(log->durable(), updates);
  }
}

using SharedBufferLogDeathTest = SharedBufferLogTest;

TEST_F(SharedBufferLogDeathTest, ChangeOfAnotherSizeIsRefused) {
  const std::byte byte{1};
  EXPECT_DEATH((void)log_.Write(0, {&byte, 1}), "all changes have one size");
}

}  // namespace
}  // namespace alpheus::bench::ordered_store
