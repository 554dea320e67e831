// SPDX-License-Identifier: Apache-2.0
#include "log/core/space/reclaimer.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// RCL5, and P-A3.7: the ceiling is raised before its last half step is used.
TEST(ReclaimerTest, CeilingIsRaisedAheadUnlessTheHeadIsHeld) {
  testing::LogHarness harness({.ring_capacity = 4096});
  ASSERT_TRUE(harness.Open().ok());
  const RingLogStart start = harness.opened().start;
  harness.Drop();

  ModelPersistence& pmem = harness.pmem();
  FutexWaiter waiter(Clock::Real());
  Progress progress(waiter);
  LogFailure failure(progress);
  Superline found = start.superline;
  found.ceiling = RingOffset(512);
  SuperlineStore<ModelPersistence> superline(pmem, pmem.region(), found,
                                             start.superline_seq, failure);
  const Ring ring = RingOf(pmem.region(), found);
  Reclaimer<ModelPersistence> reclaimer(pmem, "model", ring, start.table, found,
                                        /*ceiling_step=*/1024, start.index,
                                        superline);
  const auto raised = [&reclaimer](uint64_t end) {
    EXPECT_TRUE(reclaimer.RaiseAhead(RingOffset(end)).ok());
    return reclaimer.published().ceiling;
  };
  reclaimer.HoldHead();
  EXPECT_EQ(raised(64), RingOffset(512));
  EXPECT_EQ(superline.seq(), start.superline_seq);
  reclaimer.UnholdHead();
  EXPECT_EQ(raised(64), RingOffset(64 + 1024));
  EXPECT_EQ(reclaimer.publications(), 1u);
  EXPECT_EQ(raised(64 + 512), RingOffset(64 + 1024)) << "half a step is left";
  EXPECT_EQ(raised(128 + 512), RingOffset(128 + 512 + 1024));
  EXPECT_EQ(raised(4000 / 64 * 64), RingOffset(4096)) << "a lap";
  EXPECT_EQ(reclaimer.publications(), 3u);
  EXPECT_EQ(raised(4096), RingOffset(4096));
  EXPECT_EQ(reclaimer.publications(), 3u);
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
