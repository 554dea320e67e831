// SPDX-License-Identifier: Apache-2.0
#include "log/core/space/reclaimer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/base/clock.h"
#include "log/base/waiter.h"
#include "log/core/ring/region_state.h"
#include "log/core/space/superline_store.h"
#include "log/core/write/log_failure.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus {

using model::ModelPersistence;

namespace {

// P-L4, RCL2 (reclaimer.h): at every instant of an update of the head, what may
// be used again is free in the superline that a power cut would leave.
TEST(ReclaimerTest, BytesAreFreedOnlyWhenTheHeadIsOnMedia) {
  testing::LogHarness harness({.ring_capacity = 4096});
  ASSERT_TRUE(harness.Open().ok());
  for (int i = 0; i < 4; ++i) harness.Append(std::string(500, 'x'));
  const Lsn durable = harness.log().durable_lsn();
  const RingLogStart start = harness.opened().start;
  harness.Drop();

  ModelPersistence& pmem = harness.pmem();
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter);
  LogFailure failure(progress);
  SuperlineStore<ModelPersistence> superline(
      pmem, pmem.region(), start.superline, start.superline_seq, failure);
  const Ring ring = RingOf(pmem.region(), start.superline);
  Reclaimer<ModelPersistence> reclaimer(pmem, "model", ring, start.table,
                                        start.superline, kCeilingStepBytes,
                                        start.index, superline);
  int spins = 0;
  pmem.SetHook([&](const ModelPersistence::Event&) {
    ++spins;
    std::vector<std::byte> image = pmem.CutKeepingNone();
    const auto state = ReadRegionState(image, "model");
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_LE(reclaimer.reuse_limit_word().load(),
              state->superline.ceiling.value);
  });
  ASSERT_TRUE(reclaimer.CleanThrough(durable, durable).ok());
  pmem.SetHook({});
  EXPECT_GE(spins, 6);
  EXPECT_EQ(reclaimer.reuse_limit_word().load(),
            reclaimer.head().offset.value + ring.capacity());
}

// A reclaimer of a log with nothing in it, whose ceiling is low.
class RaisedReclaimer {
 public:
  explicit RaisedReclaimer(uint64_t ceiling_step) {
    EXPECT_TRUE(harness_.Open().ok());
    const RingLogStart start = harness_.opened().start;
    harness_.Drop();
    first_seq_ = start.superline_seq;
    Superline found = start.superline;
    found.ceiling = RingOffset(512);
    ModelPersistence& pmem = harness_.pmem();
    superline_.emplace(pmem, pmem.region(), found, first_seq_, failure_);
    reclaimer_.emplace(pmem, "model", RingOf(pmem.region(), found), start.table,
                       found, ceiling_step, start.index, *superline_);
  }

  Reclaimer<ModelPersistence>* operator->() { return &*reclaimer_; }
  uint64_t updates() const { return superline_->seq() - first_seq_; }
  // Returns the ceiling after the records that end there are finished.
  RingOffset After(uint64_t end) {
    EXPECT_TRUE(reclaimer_->RaiseAhead(RingOffset(end)).ok());
    return reclaimer_->published().ceiling;
  }

 private:
  testing::LogHarness harness_{
      testing::LogHarness::Options{.ring_capacity = 4096}};
  FutexWaiter waiter_{Clock::Real()};
  Progress progress_{waiter_};
  LogFailure failure_{progress_};
  uint64_t first_seq_ = 0;
  std::optional<SuperlineStore<ModelPersistence>> superline_;
  std::optional<Reclaimer<ModelPersistence>> reclaimer_;
};

// RCL6, and P-A3.7: the ceiling is raised before the last part below it is
// used: here a sixteenth of the ring, which is less than half a step.
TEST(ReclaimerTest, CeilingIsRaisedAheadUnlessTheHeadIsHeld) {
  RaisedReclaimer raised(/*ceiling_step=*/1024);
  raised->HoldHead();
  EXPECT_EQ(raised.After(320), RingOffset(512));
  EXPECT_EQ(raised.updates(), 0u);
  raised->UnholdHead();
  EXPECT_EQ(raised.After(256), RingOffset(512)) << "enough is left";
  EXPECT_EQ(raised.After(320), RingOffset(320 + 1024));
  EXPECT_EQ(raised->publications(), 1u);
  EXPECT_EQ(raised.After(1088), RingOffset(320 + 1024)) << "enough is left";
  EXPECT_EQ(raised.After(1152), RingOffset(1152 + 1024));
  EXPECT_EQ(raised.After(4032), RingOffset(4096)) << "a lap";
  EXPECT_EQ(raised->publications(), 3u);
  EXPECT_EQ(raised.After(4096), RingOffset(4096));
  EXPECT_EQ(raised->publications(), 3u);
}

// Half a step is more than the whole ring.
TEST(ReclaimerTest, CeilingOfASmallRingIsRaisedAhead) {
  RaisedReclaimer raised(kCeilingStepBytes);
  EXPECT_EQ(raised.After(256), RingOffset(512)) << "enough is left";
  EXPECT_EQ(raised.After(320), RingOffset(4096)) << "a lap";
  EXPECT_EQ(raised->publications(), 1u);
}

// Half a step is less than a sixteenth of the ring.
TEST(ReclaimerTest, CeilingOfALargeRingIsRaisedByHalfAStep) {
  RaisedReclaimer raised(/*ceiling_step=*/256);
  EXPECT_EQ(raised.After(384), RingOffset(512)) << "half a step is left";
  EXPECT_EQ(raised.After(448), RingOffset(448 + 256));
}

// After a failed update the copies may differ, and which one is newer only the
// next start can say: another update must not write over it (P-H20).
TEST(SuperlineStoreTest, NothingIsWrittenOnceTheLogHasFailed) {
  testing::LogHarness harness({.ring_capacity = 4096});
  ASSERT_TRUE(harness.Open().ok());
  const RingLogStart start = harness.opened().start;
  harness.Drop();

  ModelPersistence& pmem = harness.pmem();
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter);
  LogFailure failure(progress);
  SuperlineStore<ModelPersistence> superline(
      pmem, pmem.region(), start.superline, start.superline_seq, failure);
  const absl::Status failed = absl::UnavailableError("medium");
  failure.Fail(failed);
  const std::vector<std::byte> before(pmem.region().begin(),
                                      pmem.region().end());
  EXPECT_EQ(superline.Update([](Superline& s) { s.head_lsn = Lsn(9); }),
            failed);
  EXPECT_TRUE(std::ranges::equal(pmem.region(), before));
  EXPECT_EQ(superline.seq(), start.superline_seq);
}

}  // namespace
}  // namespace alpheus
