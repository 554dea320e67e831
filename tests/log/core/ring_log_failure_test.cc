// SPDX-License-Identifier: Apache-2.0
// A failure of the medium while another thread sleeps: it must wake.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <span>
#include <string>
#include <thread>

#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "log/core/format_region.h"
#include "log/core/ring_log.h"
#include "log/format/layout.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "recovery/local_opening.h"

namespace alpheus {
namespace {

std::atomic<int> sync_result{0};
int Sync(const void* /*address*/, size_t /*bytes*/) { return sync_result; }

// Sleeps at once and tells that it does.
class TellingWaiter final : public Waiter {
 public:
  bool Spin(int /*round*/) override { return false; }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override {
    sleeping_ = true;
    sleeping_.notify_one();
    futex_.Wait(generation, seen, deadline);
  }
  void WakeAll(const std::atomic<uint32_t>& generation) override {
    futex_.WakeAll(generation);
  }
  void AwaitSleeper() { sleeping_.wait(false); }

 private:
  FutexWaiter futex_{Clock::Real()};
  std::atomic<bool> sleeping_{false};
};

// H20, F7: the failure here is one of the superline, not of a force.
TEST(RingLogFailureTest, SleeperWakesWhenASuperlineUpdateFails) {
  const Layout layout = *Layout::ForRing(4096, 16);
  Region region = *Region::Anonymous(layout.region_bytes);
  MsyncPersistence pmem("failing", Sync);
  Random random(1);
  ASSERT_TRUE(
      FormatRegion(pmem, region.bytes(), layout, NewLocalIdentity(random))
          .ok());
  LocalOpeningOptions options;
  options.name = "failing";
  const auto opened = OpenEpochLocally(pmem, region.bytes(), options, random);
  ASSERT_TRUE(opened.ok()) << opened.status();
  TellingWaiter waiter;
  RingLog<MsyncPersistence> log(pmem, region.bytes(), opened->start,
                                RingLogOptions{"failing", 64}, Clock::Real(),
                                waiter);
  const std::string payload(1000, 'p');
  const std::span<const std::byte> part = AsBytes(payload);
  ASSERT_TRUE(log.Append({&part, 1}, 1, Deadline()).ok());
  auto open = log.Reserve(1, Deadline());
  ASSERT_TRUE(open.ok());
  log.HandOver(*open);

  std::jthread sleeper([&] {
    EXPECT_EQ(log.WaitDurable(open->lsn, Deadline()).code(),
              absl::StatusCode::kUnavailable);
  });
  waiter.AwaitSleeper();
  sync_result = EIO;
  EXPECT_EQ(log.CleanupThrough(Lsn(1)).code(), absl::StatusCode::kUnavailable);
  sleeper.join();
  log.Abort(*open);
  sync_result = 0;
}

}  // namespace
}  // namespace alpheus
