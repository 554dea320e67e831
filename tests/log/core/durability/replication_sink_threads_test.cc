// SPDX-License-Identifier: Apache-2.0
// Threads that wait for a sink, and sleep: no wake-up is lost. And what they
// change while a sink sends it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/file_descriptor.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {
namespace {

// A backup on a thread of its own, which acknowledges what it finds whenever it
// runs. W = 2.
class ThreadedSink final : public ReplicationSink {
 public:
  ThreadedSink() : backup_([this] { Acknowledge(); }) {}
  ~ThreadedSink() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    posted_changed_.notify_one();
    backup_.join();
  }

  void Advance(const RingEnd& finished) override {
    {
      const std::lock_guard lock(mutex_);
      posted_ = finished.lsn;
    }
    posted_changed_.notify_one();
    if (on_advance) std::exchange(on_advance, nullptr)();
  }
  void LocalPersisted(Lsn lsn) override { local_ = lsn; }
  void AdvanceBounds(const RingBounds& bounds) override { bounds_ = bounds; }
  void BeginConfirmation() override {
    {
      const std::lock_guard lock(mutex_);
      ++begun_;
    }
    posted_changed_.notify_one();
  }
  void End(const absl::Status& /*why*/) override {}
  Polled Poll() override {
    const std::lock_guard lock(mutex_);
    arrived_ = false;
    const bool is_answered =
        std::exchange(taken_round_, answered_) != answered_;
    return std::exchange(taken_, acked_) != acked_ || is_answered
               ? Polled::kMoved
               : Polled::kIdle;
  }
  ReplicationState replication_state() const override {
    return {.durable_lsn = std::min(local_, taken_),
            .reuse_limit = bounds_.ceiling,
            .durable_head_lsn = bounds_.head.lsn,
            .is_confirming = taken_round_ != begun_};
  }
  absl::Status status() const override { return absl::OkStatus(); }
  void WaitForActivity(Deadline) override {
    std::unique_lock lock(mutex_);
    activity_.wait(lock, [this] { return arrived_ || woken_; });
    woken_ = false;
  }
  void Wake() override {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    activity_.notify_all();
  }

  Lsn posted() {
    const std::lock_guard lock(mutex_);
    return posted_;
  }

  // Rounds of confirmation that have begun.
  uint64_t begun_rounds() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  uint64_t answered_rounds() {
    const std::lock_guard lock(mutex_);
    return answered_;
  }

  std::function<void()> on_advance;  // the next time

 private:
  void Acknowledge() {
    std::unique_lock lock(mutex_);
    for (;;) {
      posted_changed_.wait(lock, [this] {
        return ended_ || acked_ < posted_ || answered_ < begun_;
      });
      if (ended_) return;
      acked_ = posted_;
      answered_ = begun_;
      arrived_ = true;
      activity_.notify_all();
    }
  }

  Lsn local_{0};
  Lsn taken_{0};
  RingBounds bounds_;
  std::mutex mutex_;
  std::condition_variable posted_changed_;
  std::condition_variable activity_;
  Lsn posted_{0};
  Lsn acked_{0};
  uint64_t begun_ = 0;  // rounds of confirmation
  uint64_t answered_ = 0;
  uint64_t taken_round_ = 0;
  bool arrived_ = false;
  bool woken_ = false;
  bool ended_ = false;
  std::thread backup_;
};

// Sleeps at once, so that nearly all waits are sleeps.
class SleepyWaiter final : public Waiter {
 public:
  bool Spin(int) override {
    has_spun = true;
    return false;
  }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override {
    futex_.Wait(generation, seen, deadline);
  }
  void WakeAll(const std::atomic<uint32_t>& generation) override {
    futex_.WakeAll(generation);
  }

  std::atomic<bool> has_spun = false;

 private:
  FutexWaiter futex_{Clock::Real()};
};

// A log whose threads wait for such a backup, and sleep.
struct ThreadsLog {
  explicit ThreadsLog(uint64_t ring_capacity, RingLogOptions options = {}) {
    Random random(1);
    const Layout layout = *Layout::ForRing(ring_capacity, 64);
    region = *Region::Anonymous(layout.region_bytes);
    EXPECT_TRUE(
        FormatRegion(pmem, region->bytes(), layout, NewLocalIdentity(random))
            .ok());
    recovery::LocalOpeningOptions opening;
    opening.name = "threads";
    const recovery::OpenedEpoch opened =
        *recovery::OpenEpochLocally(pmem, region->bytes(), opening, random);
    options.name = "threads";
    options.sink = &sink;
    log.emplace(pmem, region->bytes(), opened.start, options, Clock::Real(),
                waiter);
  }

  LibpmemPersistence pmem{{}};
  std::optional<Region> region;
  ThreadedSink sink;
  SleepyWaiter waiter;
  std::optional<RingLog<LibpmemPersistence>> log;
};

// No wake-up is lost: nobody has a deadline, and one lost one would be the end.
// The ring is small, so that they wait for room, too.
TEST(ReplicationSinkThreadsTest, ThreadsThatSleepAreWoken) {
  constexpr int kThreads = 4;
  constexpr int kAppends = 2000;
  RingLogOptions options;
  options.exposure_records_max = 16;
  ThreadsLog world(16384, options);
  RingLog<LibpmemPersistence>& log = *world.log;
  const auto append = [&log] {
    const std::string text(100, 'x');
    const std::span<const std::byte> part = AsBytes(text);
    for (int i = 0; i < kAppends; ++i) {
      // With a deadline that never passes: room comes from the others.
      const auto lsn =
          log.Append({&part, 1}, 1, Deadline::In(std::chrono::hours(1)));
      ASSERT_TRUE(lsn.ok()) << lsn.status();
      ASSERT_TRUE(log.CleanupThrough(*lsn).ok());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(append);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log.durable_lsn(), Lsn(kThreads * kAppends));
  EXPECT_TRUE(log.Close().ok());
}

// RF6: each call waits for a round that began after it, and none waits for
// ever; some wait on threads, and some leave a callback, which nobody else
// looks after but the log's own thread.
TEST(ReplicationSinkThreadsTest, ConfirmationsEndAndBeginAfterTheirCalls) {
  constexpr int kThreads = 3;
  constexpr int kCalls = 1000;
  ThreadsLog world(1 << 20);
  RingLog<LibpmemPersistence>& log = *world.log;
  std::atomic<uint32_t> stop{0};
  std::thread own([&] {
    while (stop.load() == 0) {
      const Deadline until = Deadline::In(std::chrono::hours(1));
      while (log.WaitForAcks(until, stop) && stop.load() == 0) {
      }
    }
  });
  std::atomic<int> confirmed = 0;
  const auto expect_later = [&](uint64_t before) {
    EXPECT_GT(world.sink.answered_rounds(), before);
    ++confirmed;
  };
  const auto call = [&](int thread) {
    for (int i = 0; i < kCalls; ++i) {
      const uint64_t before = world.sink.begun_rounds();
      if (thread != 0) {
        ASSERT_TRUE(log.ConfirmEpoch(Deadline()).ok());
        expect_later(before);
        continue;
      }
      std::atomic<uint32_t> is_told{0};
      ASSERT_TRUE(log.OnEpochConfirmed([&](const absl::Status& status) {
                       EXPECT_TRUE(status.ok()) << status;
                       expect_later(before);
                       is_told = 1;
                       is_told.notify_one();
                     })
                      .ok());
      is_told.wait(0);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(call, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(confirmed, kThreads * kCalls);
  EXPECT_LE(world.sink.begun_rounds(),
            static_cast<uint64_t>(kThreads) * kCalls);
  stop = 1;
  log.waiter().WakeAll(stop);
  own.join();
}

// A step has passed by a record, and ends when its force was begun: the thread
// that made the step goes its way.
TEST(ReplicationSinkThreadsTest, BegunForceIsNotLeftToAStepThatPassedIt) {
  ThreadsLog world(1 << 20);
  RingLog<LibpmemPersistence>& log = *world.log;
  ReservedRecord first = *log.Reserve(8, Deadline());
  ReservedRecord second = *log.Reserve(8, Deadline());
  ASSERT_TRUE(log.Complete(first).ok());
  std::atomic<bool> has_returned = false;
  std::thread other;
  world.sink.on_advance = [&] {
    other = std::thread([&] {
      EXPECT_TRUE(log.Complete(second).ok());
      EXPECT_TRUE(log.BeginForce(second.lsn).ok());
      has_returned = true;
    });
    while (!world.waiter.has_spun && !has_returned) std::this_thread::yield();
  };
  EXPECT_TRUE(log.BeginForce(first.lsn).ok());
  other.join();
  EXPECT_EQ(world.sink.posted(), second.lsn);
}

// Nor if callbacks force in the middle of the waits of those who run them.
TEST(ReplicationSinkThreadsTest, CallbacksThatForceHoldNobodyUp) {
  constexpr int kThreads = 3;
  constexpr int kAppends = 300;
  ThreadsLog world(1 << 20);
  RingLog<LibpmemPersistence>& log = *world.log;
  std::atomic<int> told{0};
  const auto append = [&log] {
    const std::string text(100, 'x');
    const std::span<const std::byte> part = AsBytes(text);
    return log.Append({&part, 1}, 1, Deadline());
  };
  const auto run = [&] {
    for (int i = 0; i < kAppends; ++i) {
      const auto lsn = append();
      ASSERT_TRUE(lsn.ok()) << lsn.status();
      auto record = log.Reserve(16, Deadline());
      ASSERT_TRUE(record.ok()) << record.status();
      ASSERT_TRUE(log.Complete(*record).ok());
      ASSERT_TRUE(log.OnDurable(record->lsn,
                                [&](const absl::Status& status) {
                                  EXPECT_TRUE(status.ok()) << status;
                                  EXPECT_TRUE(append().ok());
                                  ++told;
                                })
                      .ok());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(run);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(log.Close().ok());
  EXPECT_EQ(told, kThreads * kAppends);
  EXPECT_EQ(log.durable_lsn(), Lsn(3 * kThreads * kAppends));
}

// RCL5 (reclaimer.h). Cleaning changes one word of a record that is still sent
// to a slow backup, and nothing else.
TEST(ReplicationSinkThreadsTest, RecordMayBeCleanedWhileItIsSent) {
  constexpr uint64_t kRingBytes = 1 << 16;
  constexpr uint64_t kRecords = 50;
  ThreadsLog world(kRingBytes);
  RingLog<LibpmemPersistence>& log = *world.log;
  const std::string text(100, 'x');
  const std::span<const std::byte> part = AsBytes(text);
  for (uint64_t i = 0; i < kRecords; ++i) {
    ASSERT_TRUE(log.Append({&part, 1}, 1, Deadline()).ok());
  }
  const std::span<const std::byte> ring = world.region->bytes().subspan(
      Layout::ForRing(kRingBytes, 64)->ring_offset, kRingBytes);
  std::vector<uint64_t> before(ring.size() / sizeof(uint64_t));
  std::memcpy(before.data(), ring.data(), ring.size());

  const FileDescriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  ASSERT_GE(nowhere.get(), 0);
  // No order of memory, so that nothing orders what is sent and what is stored.
  std::atomic<uint64_t> sent{0};
  std::atomic<bool> ends{false};
  std::thread sender([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      if (write(nowhere.get(), ring.data(), ring.size()) > 0) {
        sent.fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
  const auto await_another = [&] {
    const uint64_t seen = sent.load(std::memory_order_relaxed);
    while (sent.load(std::memory_order_relaxed) == seen) {
      std::this_thread::yield();
    }
  };
  await_another();
  for (uint64_t i = 0; i < kRecords; ++i) {
    EXPECT_TRUE(log.Cleanup(Lsn(1 + i)).ok());
  }
  await_another();
  ends.store(true, std::memory_order_relaxed);
  sender.join();

  uint64_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t offset = i * sizeof(uint64_t);
    uint64_t now = 0;
    std::memcpy(&now, &ring[offset], sizeof(now));
    if (now == before[i]) continue;
    ++changed;
    EXPECT_EQ(offset % kLineBytes, offsetof(RecordHeader, cleaned)) << offset;
  }
  EXPECT_EQ(changed, kRecords);
  EXPECT_TRUE(log.Close().ok());
}

}  // namespace
}  // namespace alpheus::testing
