// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/sim/world/idle_log.h"

#include <gtest/gtest.h>

#include "log/core/ring/region_state.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kRecords = 20;
constexpr int64_t kStepNanos = 10'000;
constexpr int64_t kNanosMax = 100'000'000;

template <class Done>
void RunUntil(World& world, const Done& done) {
  const int64_t until = world.now() + kNanosMax;
  while (!done() && world.now() < until) world.network().Run(kStepNanos);
  ASSERT_TRUE(done());
}

}  // namespace

IdleLogTest::IdleLogTest() {
  world_.StartPrimary(world_.machine(0));
  RunUntil(world_,
           [&] { return world_.history().records_acknowledged() >= kRecords; });
  primary().Idle();
  RunUntil(world_, [&] { return primary().is_idle(); });
  // A watermark that says so, and heads.
  world_.network().Run(kNanosMax / 10);
  world_.checkers().epochs.CheckNews();
}

RecordView IdleLogTest::LastRecord() {
  const RegionState state = MediumOf(0).State();
  const Ring ring = RingOf(world_.machine(0).pmem->region(), state.superline);
  RecordCursor cursor(ring, state.table, state.head(),
                      state.head().offset + ring.capacity());
  RecordView last;
  while (cursor.position().lsn < primary().next_lsn()) {
    EXPECT_EQ(cursor.Next(), RecordCursor::Step::kRecord);
    if (::testing::Test::HasFailure()) break;
    if (cursor.record().payload.empty() || cursor.record().cleaned) continue;
    last = cursor.record();
  }
  return last;
}

uint64_t IdleLogTest::PayloadOf(const RecordView& record) const {
  const Ring ring(nullptr, world_.layout().ring_capacity);
  return world_.layout().ring_offset + ring.Place(record.offset) +
         kRecordHeaderBytes;
}

}  // namespace alpheus::sim
