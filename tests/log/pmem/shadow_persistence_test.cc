// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/shadow_persistence.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "log/pmem/counters.h"
#include "tests/support/fabrics/model_shadow.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {
namespace {

class ShadowPersistenceTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 3 * kPageBytes;

  ShadowPersistence& pmem() { return shadowed_.pmem(); }
  std::byte* At(size_t offset) { return shadowed_.bytes().data() + offset; }
  uint64_t* WordAt(size_t offset) {
    return reinterpret_cast<uint64_t*>(At(offset));
  }
  uint64_t OnMedium(size_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, model_.region().data() + offset, sizeof(word));
    return word;
  }
  uint64_t AfterACut(size_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, model_.persistent().data() + offset, sizeof(word));
    return word;
  }

  model::ModelPersistence model_{kBytes};
  ShadowedModel shadowed_{model_};
};

// Goal: the file holds nothing that nobody flushed, whoever wrote it; what was
// flushed may be there, word by word, and is once it is fenced.
TEST_F(ShadowPersistenceTest, MediumGetsLinesByFlushAndKeepsThemByFence) {
  pmem().Store8(WordAt(128), 1);
  *WordAt(136) = 2;  // a peer's
  *WordAt(192) = 3;  // the next line
  EXPECT_EQ(OnMedium(128), 0u);
  pmem().Flush(At(130), 1);
  EXPECT_EQ(OnMedium(128), 1u);
  EXPECT_EQ(OnMedium(136), 2u);
  EXPECT_EQ(OnMedium(192), 0u);
  EXPECT_EQ(AfterACut(128), 0u);
  const std::vector<model::ModelPersistence::DirtyWord> open =
      model_.DirtyWords();
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[0].values, (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(open[1].values, (std::vector<uint64_t>{0, 2}));
  ASSERT_TRUE(pmem().Fence());
  EXPECT_EQ(AfterACut(128), 1u);
  EXPECT_EQ(AfterACut(136), 2u);
  EXPECT_TRUE(model_.DirtyWords().empty());
}

TEST_F(ShadowPersistenceTest, LinesPastTheCacheNeedTheFenceAlone) {
  std::vector<std::byte> source(2 * kLineBytes + 1, std::byte{7});
  pmem().CopyLinesNt(At(kPageBytes - kLineBytes), source.data() + 1, 2);
  pmem().StoreLineNt(At(0), {{1, 2, 3, 4, 5, 6, 7, 8}});
  EXPECT_EQ(*WordAt(56), 8u);
  EXPECT_EQ(*WordAt(kPageBytes), 0x0707070707070707u);
  EXPECT_EQ(AfterACut(0), 0u);
  ASSERT_TRUE(pmem().Fence());
  EXPECT_EQ(AfterACut(56), 8u);
  EXPECT_EQ(AfterACut(kPageBytes - 8), 0x0707070707070707u);
  EXPECT_EQ(AfterACut(kPageBytes + 56), 0x0707070707070707u);
}

// A range over pages, and one that is flushed as a hint.
TEST_F(ShadowPersistenceTest, RangesOverPagesAreWhole) {
  std::ranges::fill(shadowed_.bytes(), std::byte{9});
  pmem().Flush(At(1), kBytes - 2);
  pmem().Flush(At(0), 0);
  ASSERT_TRUE(pmem().Fence());
  EXPECT_TRUE(std::ranges::equal(model_.persistent(), shadowed_.bytes()));
  *WordAt(0) = 5;
  pmem().FlushHint(At(0), 8);
  EXPECT_EQ(OnMedium(0), 5u);
}

TEST_F(ShadowPersistenceTest, FailureOfTheMediumIsTold) {
  model_.FailFence(1);
  pmem().Flush(At(0), 8);
  EXPECT_FALSE(pmem().Fence());
  EXPECT_EQ(pmem().Error().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ShadowPersistenceTest, WhatTheMediumLostIsRepaired) {
  pmem().Store8(WordAt(64), 1);
  ASSERT_TRUE(Persist(pmem(), At(64), 8));
  EXPECT_FALSE(*RepairOnMedium(pmem(), At(0), kPageBytes));
  const uint64_t damaged = 77;
  model_.Copy(model_.region().data() + 64, &damaged, sizeof(damaged));
  ASSERT_TRUE(Persist(model_, model_.region().data() + 64, 8));
  EXPECT_TRUE(*RepairOnMedium(pmem(), At(0), kPageBytes));
  EXPECT_EQ(AfterACut(64), 1u);
  EXPECT_FALSE(*RepairOnMedium(pmem(), At(0), kPageBytes));
}

// On mapped memory: each flushed line is one line past the cache.
TEST(PmemShadowedMediumTest, LinesAreCounted) {
  Region file = *Region::Anonymous(kPageBytes);
  Region memory = *Region::Anonymous(kPageBytes);
  ShadowPersistence pmem(memory.bytes(),
                         std::make_unique<PmemShadowedMedium>(
                             file.bytes(), LibpmemPersistence::Options()));
  const PersistenceCounters before = ThreadPersistenceCounters();
  pmem.Copy(memory.bytes().data() + 60, "12345678", 8);
  pmem.Flush(memory.bytes().data() + 60, 8);
  EXPECT_EQ(std::memcmp(file.bytes().data() + 60, "12345678", 8), 0);
  ASSERT_TRUE(pmem.Fence());
  const PersistenceCounters after = ThreadPersistenceCounters();
  EXPECT_EQ(after.copied_bytes - before.copied_bytes, 8u);
  EXPECT_EQ(after.flushed_lines, before.flushed_lines);
  EXPECT_EQ(after.fences - before.fences, 1u);
  EXPECT_EQ(pmem.OnMedium(memory.bytes().data() + 60),
            file.bytes().data() + 60);
}

// Has another thread do something between the reading of the first line and its
// storing; for so long as a thread that is not kept waiting may take.
class InterruptedMedium final : public ShadowedMedium {
 public:
  explicit InterruptedMedium(std::function<void()> meanwhile)
      : meanwhile_(std::move(meanwhile)) {}

  std::span<std::byte> bytes() override { return memory_.bytes(); }
  void StoreLine(size_t offset, const LineWords& words) override {
    if (!is_interrupted_.exchange(true)) {
      other_ = std::thread([this] {
        meanwhile_();
        is_done_ = true;
      });
      for (int i = 0; i < 100'000 && !is_done_; ++i) sched_yield();
    }
    std::memcpy(memory_.bytes().data() + offset, &words, kLineBytes);
  }
  void Order() override {}
  bool Fence() override { return true; }
  absl::Status Error() const override { return absl::OkStatus(); }
  void Join() { other_.join(); }

 private:
  const std::function<void()> meanwhile_;
  Region memory_ = *Region::Anonymous(kPageBytes);
  std::atomic<bool> is_interrupted_{false};
  std::atomic<bool> is_done_{false};
  std::thread other_;
};

// Goal: SHP1. Method: while one thread has read a line and not stored it,
// another one stores to that line, flushes and fences.
TEST(ShadowPersistenceThreadsTest, NoFlushTakesBackWhatAnotherThreadFenced) {
  Region memory = *Region::Anonymous(kPageBytes);
  auto* const words = reinterpret_cast<uint64_t*>(memory.bytes().data());
  ShadowPersistence* shadow = nullptr;
  auto owned = std::make_unique<InterruptedMedium>([&] {
    shadow->Store8(words + 1, 2);
    EXPECT_TRUE(Persist(*shadow, words + 1, sizeof(*words)));
  });
  InterruptedMedium& medium = *owned;
  ShadowPersistence pmem(memory.bytes(), std::move(owned));
  shadow = &pmem;
  pmem.Store8(words, 1);
  EXPECT_TRUE(Persist(pmem, words, sizeof(*words)));
  medium.Join();
  EXPECT_EQ(std::memcmp(medium.bytes().data(), words, kLineBytes), 0);
}

}  // namespace
}  // namespace alpheus::testing
