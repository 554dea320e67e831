// SPDX-License-Identifier: Apache-2.0
#include "log/base/mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace alpheus {
namespace {

constexpr int kThreads = 4;

bool IsFree(Mutex& mutex) {
  if (!mutex.TryLock()) return false;
  mutex.Unlock();
  return true;
}

TEST(MutexTest, IsTakenOnce) {
  Mutex mutex;
  for (int round = 0; round < 2; ++round) {
    const bool is_taken = mutex.TryLock();
    ASSERT_TRUE(is_taken);
    if (!is_taken) return;  // for the analysis of locks
    EXPECT_FALSE(IsFree(mutex));
    mutex.Unlock();
  }
  EXPECT_TRUE(IsFree(mutex));
}

// Waiters sleep, and each is woken: a lost one would hang.
TEST(MutexTest, OneAtATimeAmongThreadsThatWait) {
  constexpr uint64_t kTurns = 20'000;
  Mutex mutex;
  uint64_t turns = 0;  // a lost update shows two at a time
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        for (uint64_t i = 0; i < kTurns; ++i) {
          const MutexLock lock(mutex);
          ++turns;
        }
      });
    }
  }
  EXPECT_EQ(turns, kThreads * kTurns);
}

// All others are asleep, or about to be, when it is let go: one after the other
// is woken.
TEST(MutexTest, EverySleeperHasItsTurn) {
  for (int round = 0; round < 200; ++round) {
    Mutex mutex;
    std::atomic<int> waiting{0};
    int turns = 0;
    std::vector<std::jthread> threads;
    {
      const MutexLock lock(mutex);
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&] {
          ++waiting;
          const MutexLock turn(mutex);
          ++turns;
        });
      }
      while (waiting.load() < kThreads) std::this_thread::yield();
    }
    threads.clear();
    EXPECT_EQ(turns, kThreads);
  }
}

// A thread that finds the mutex free may end it, even before the thread that
// let go returns.
TEST(MutexTest, IsEndedByTheNextHolder) {
  struct Shared {
    Mutex mutex;
    bool is_done = false;
  };
  for (int round = 0; round < 1'000; ++round) {
    auto shared = std::make_unique<Shared>();
    std::jthread other([raw = shared.get()] {
      const MutexLock lock(raw->mutex);
      raw->is_done = true;
    });
    for (bool is_done = false; !is_done; std::this_thread::yield()) {
      const MutexLock lock(shared->mutex);
      is_done = shared->is_done;
    }
    shared.reset();
  }
}

}  // namespace
}  // namespace alpheus
