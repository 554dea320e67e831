// SPDX-License-Identifier: Apache-2.0
// extents: ranges of the ring by their monotone offsets, and whether two share
// a place.
//
// Thread safety: pure.
// References: protocol P-H12; repair_plan.h, join_plan.h.
#ifndef ALPHEUS_RECOVERY_OPENING_EXTENTS_H_
#define ALPHEUS_RECOVERY_OPENING_EXTENTS_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/ids.h"

namespace alpheus::recovery {

// [begin, end).
struct Extent {
  RingOffset begin;
  RingOffset end;
};

// Extends the last extent if the new one follows it; else adds it.
inline void AddExtent(RingOffset begin, RingOffset end,
                      std::vector<Extent>* extents) {
  if (!extents->empty() && extents->back().end == begin) {
    extents->back().end = end;
  } else {
    extents->push_back({begin, end});
  }
}

// Returns true if two extents share a byte of the ring, in any laps.
inline bool Overlap(const Extent& a, const Extent& b, uint64_t capacity) {
  const uint64_t distance =
      (b.begin.value % capacity + capacity - a.begin.value % capacity) %
      capacity;
  return distance < a.end - a.begin || distance + (b.end - b.begin) > capacity;
}

inline bool AnyOverlap(std::span<const Extent> some,
                       std::span<const Extent> others, uint64_t capacity) {
  return std::any_of(some.begin(), some.end(), [&](const Extent& a) {
    return std::any_of(others.begin(), others.end(), [&](const Extent& b) {
      return Overlap(a, b, capacity);
    });
  });
}

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_EXTENTS_H_
