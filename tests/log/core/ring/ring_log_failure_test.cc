// SPDX-License-Identifier: Apache-2.0
// Events around a sleep: progress just before it, and a failure of the
// medium while another thread sleeps, which must wake.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/waiter.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "recovery/replica/local_opening.h"

namespace alpheus {
namespace {

std::atomic<int> sync_result{0};
int Sync(const void* /*address*/, size_t /*bytes*/) { return sync_result; }

// Sleeps at once and tells that it does.
class NotifyingWaiter final : public Waiter {
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

// Lets a test act where the log is about to sleep, and where it sleeps.
class ActingWaiter final : public Waiter {
 public:
  std::function<void()> before_sleep = [] {};
  std::function<void()> asleep = [] {};

  bool Spin(int /*round*/) override {
    before_sleep();
    return false;
  }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline /*deadline*/) override {
    asleep();
    EXPECT_NE(generation.load(), seen) << "nobody wakes the sleeper";
  }
  void WakeAll(const std::atomic<uint32_t>& /*generation*/) override {}
};

class RingLogFailureTest : public ::testing::Test {
 protected:
  RingLogFailureTest()
      : layout_(*Layout::ForRing(4096, 16)),
        region_(*Region::Anonymous(layout_.region_bytes)),
        pmem_("failing", Sync) {
    sync_result = 0;
    EXPECT_TRUE(
        FormatRegion(pmem_, region_.bytes(), layout_, NewLocalIdentity(random_))
            .ok());
    recovery::LocalOpeningOptions options;
    options.name = "failing";
    opened_ =
        recovery::OpenEpochLocally(pmem_, region_.bytes(), options, random_);
    EXPECT_TRUE(opened_.ok()) << opened_.status();
  }
  void Open(Waiter& waiter) {
    log_ = std::make_unique<RingLog<MsyncPersistence>>(
        pmem_, region_.bytes(), opened_->start, RingLogOptions{"failing", 64},
        Clock::Real(), waiter);
  }
  // A record that is large enough for its cleanup to update the superline, and
  // an open one that somebody else will complete.
  ReservedRecord AppendAndReserve() {
    const std::string payload(1000, 'p');
    const std::span<const std::byte> part = AsBytes(payload);
    EXPECT_TRUE(log_->Append({&part, 1}, 1, Deadline()).ok());
    auto open = log_->Reserve(1, Deadline());
    EXPECT_TRUE(open.ok()) << open.status();
    log_->Detach(*open);
    return *open;
  }
  void FailASuperlineUpdate() {
    sync_result = EIO;
    EXPECT_EQ(log_->CleanupThrough(Lsn(1)).code(),
              absl::StatusCode::kUnavailable);
    sync_result = 0;
  }

  const Layout layout_;
  Region region_;
  MsyncPersistence pmem_;
  Random random_{1};
  absl::StatusOr<recovery::OpenedEpoch> opened_;
  std::unique_ptr<RingLog<MsyncPersistence>> log_;
};

// P-H20, P-F7: the failure here is one of the superline, not of a force.
TEST_F(RingLogFailureTest, SleeperWakesWhenASuperlineUpdateFails) {
  NotifyingWaiter waiter;
  Open(waiter);
  const ReservedRecord open = AppendAndReserve();
  std::jthread sleeper([&] {
    EXPECT_EQ(log_->WaitDurable(open.lsn, Deadline()).code(),
              absl::StatusCode::kUnavailable);
  });
  waiter.AwaitSleeper();
  FailASuperlineUpdate();
  sleeper.join();
  log_->Abort(open);
}

// The same in one thread: without threads a sleeper that nobody wakes is told
// at once.
TEST_F(RingLogFailureTest, FailureNotifiesWhoSleeps) {
  ActingWaiter waiter;
  Open(waiter);
  const ReservedRecord open = AppendAndReserve();
  waiter.asleep = [this] { FailASuperlineUpdate(); };
  EXPECT_EQ(log_->WaitDurable(open.lsn, Deadline()).code(),
            absl::StatusCode::kUnavailable);
  log_->Abort(open);
}

// P-H20: a superline update fails under locks, which a callback may want.
// Without the fix this test never ends.
TEST_F(RingLogFailureTest, CallbackOfASuperlineFailureMayUseTheLog) {
  ActingWaiter waiter;
  Open(waiter);
  const ReservedRecord open = AppendAndReserve();
  absl::Status told;
  ASSERT_TRUE(log_->OnDurable(open.lsn,
                              [&](const absl::Status& status) {
                                told = status;
                                EXPECT_EQ(log_->head().lsn, Lsn(2));
                              })
                  .ok());
  FailASuperlineUpdate();
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  log_->Abort(open);
}

// The failure comes first: a caller that finished its reservation on the advice
// of a FailedPrecondition would only meet it then.
TEST_F(RingLogFailureTest, AppendTellsTheFailureDespiteAnOwnReservation) {
  NotifyingWaiter waiter;
  Open(waiter);
  const std::string payload(1000, 'p');
  const std::span<const std::byte> part = AsBytes(payload);
  ASSERT_TRUE(log_->Append({&part, 1}, 1, Deadline()).ok());
  const auto open = log_->Reserve(1, Deadline());
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(log_->Append({&part, 1}, 1, Deadline()).status().code(),
            absl::StatusCode::kFailedPrecondition);
  FailASuperlineUpdate();
  const Lsn next = log_->next_lsn();
  EXPECT_EQ(log_->Append({&part, 1}, 1, Deadline()).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(log_->next_lsn(), next) << "a refusal gives no LSN";
  log_->Abort(*open);
}

// A record that is completed between the last look and the sleep sends no
// notice, for nobody is announced yet: the look after the announcement sees it.
TEST_F(RingLogFailureTest, ProgressBeforeTheSleepIsSeen) {
  ActingWaiter waiter;
  Open(waiter);
  ReservedRecord open = AppendAndReserve();
  bool completed = false;
  waiter.before_sleep = [&] {
    if (!std::exchange(completed, true)) {
      EXPECT_TRUE(log_->Complete(open).ok());
    }
  };
  EXPECT_TRUE(log_->Force(open.lsn, 1, Deadline()).ok());
}

}  // namespace
}  // namespace alpheus
