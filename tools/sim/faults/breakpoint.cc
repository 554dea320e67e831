// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/breakpoint.h"

#include <utility>

#include "log/format/layout.h"

namespace alpheus::sim {

using Call = model::ModelPersistence::Event;
using Primitive = model::ModelPersistence::Primitive;

void Breakpoint::Set(FaultKind kind, BreakpointAim aim, uint64_t calls) {
  kind_ = kind;
  aim_ = aim;
  calls_ = calls;
  is_touched_ = false;
}

bool Breakpoint::Touches(const Call& event, uint64_t ring_offset) const {
  if (event.bytes == 0 || event.offset >= ring_offset) return false;
  const bool is_watermark =
      event.offset >= kWatermarkOffset && event.offset < kTableOffset;
  return aim_ == BreakpointAim::kMetadata || !is_watermark;
}

bool Breakpoint::Counts(const Call& event, uint64_t ring_offset) {
  if (aim_ == BreakpointAim::kAnyCall) return true;
  if (event.primitive == Primitive::kFence) {
    return std::exchange(is_touched_, false);
  }
  const bool touches = Touches(event, ring_offset);
  is_touched_ |= touches;
  return touches;
}

bool Breakpoint::OnCall(const Call& event, uint64_t ring_offset) {
  return calls_ != 0 && Counts(event, ring_offset) && --calls_ == 0;
}

}  // namespace alpheus::sim
