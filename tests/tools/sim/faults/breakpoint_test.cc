// SPDX-License-Identifier: Apache-2.0
// Does a breakpoint strike in the very call that it was set for?
#include "tools/sim/faults/breakpoint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "log/format/layout.h"

namespace alpheus::sim {
namespace {

using Event = model::ModelPersistence::Event;
using Primitive = model::ModelPersistence::Primitive;

constexpr uint64_t kRingOffset = 3 * kTableOffset;

Event Store(size_t offset) {
  return {.primitive = Primitive::kStore8, .offset = offset, .bytes = 8};
}
Event Flush(size_t offset) {
  return {.primitive = Primitive::kFlush, .offset = offset, .bytes = 64};
}
const Event kFenceCall = {.primitive = Primitive::kFence};
const Event kYield = {.primitive = Primitive::kYieldPoint};

// A record, a watermark, a superline, a table.
const std::vector<Event>& Calls() {
  static const std::vector<Event> calls = {
      Store(kRingOffset),
      Flush(kRingOffset),  // 0
      kFenceCall,
      kYield,  // 2
      Store(kWatermarkOffset),
      Flush(kWatermarkOffset),  // 4
      kFenceCall,
      Store(0),  // 6
      Flush(0),
      kFenceCall,  // 8
      Store(kTableOffset),
      Store(kRingOffset + 64),  // 10
      kFenceCall,
      kFenceCall,  // 12
  };
  return calls;
}

// In which call it strikes.
std::optional<size_t> StrikesIn(BreakpointAim aim, uint64_t calls) {
  Breakpoint breakpoint;
  breakpoint.Set(FaultKind::kKillNode, aim, calls);
  for (size_t i = 0; i < Calls().size(); ++i) {
    if (breakpoint.OnCall(Calls()[i], kRingOffset)) return i;
  }
  return std::nullopt;
}

std::vector<size_t> Counted(BreakpointAim aim) {
  std::vector<size_t> counted;
  for (uint64_t calls = 1; const auto call = StrikesIn(aim, calls); ++calls) {
    counted.push_back(*call);
  }
  return counted;
}

TEST(BreakpointTest, CountsAnyCall) {
  EXPECT_EQ(Counted(BreakpointAim::kAnyCall).size(), Calls().size());
}

TEST(BreakpointTest, CountsWhatTouchesMetadataAndTheFenceBehindIt) {
  EXPECT_EQ(Counted(BreakpointAim::kMetadata),
            (std::vector<size_t>{4, 5, 6, 7, 8, 9, 10, 12}));
}

TEST(BreakpointTest, CountsNoWatermarkWhereSuperlinesAreMeant) {
  EXPECT_EQ(Counted(BreakpointAim::kSuperlineOrTable),
            (std::vector<size_t>{7, 8, 9, 10, 12}));
}

TEST(BreakpointTest, StrikesOnceUnlessItCouldNot) {
  Breakpoint breakpoint;
  EXPECT_FALSE(breakpoint.OnCall(kFenceCall, kRingOffset));
  breakpoint.Set(FaultKind::kKillNode, BreakpointAim::kAnyCall, 1);
  EXPECT_TRUE(breakpoint.OnCall(kFenceCall, kRingOffset));
  EXPECT_FALSE(breakpoint.OnCall(kFenceCall, kRingOffset));
  breakpoint.StrikeAgain();
  EXPECT_TRUE(breakpoint.OnCall(kFenceCall, kRingOffset));
  breakpoint.Set(FaultKind::kKillNode, BreakpointAim::kAnyCall, 1);
  breakpoint.Clear();
  EXPECT_FALSE(breakpoint.is_set());
  EXPECT_FALSE(breakpoint.OnCall(kFenceCall, kRingOffset));
}

}  // namespace
}  // namespace alpheus::sim
