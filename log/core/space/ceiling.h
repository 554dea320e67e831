// SPDX-License-Identifier: Apache-2.0
// ceiling: the ring offset from which on, as a replica says, nothing of the log
// was written.
//
// Idea: the log has no tail pointer, and records after an unreadable place may
// lie anywhere in the ring. So an opening would have to search all of it. The
// ceiling in the superline bounds that search. It is raised in steps of some
// MiB, as the limit that also keeps bytes from being reused (reserver.h). Ring
// offsets only grow, so that a ceiling never speaks of another lap.
//
// Invariants:
//   CLG1. A log that has a replica open writes no byte there at or after the
//         persisted ceiling. So space is assigned only below the ceiling. That
//         bound is called `reuse_limit`.
//   CLG2. The ceiling is at most a lap after the persisted head (P-L4).
//   CLG3. While one log has the replica open, its ceiling only grows.
// Thread safety: pure functions.
// References: protocol P-A3.7, P-L4.
#ifndef ALPHEUS_LOG_CORE_SPACE_CEILING_H_
#define ALPHEUS_LOG_CORE_SPACE_CEILING_H_

#include <algorithm>
#include <cstdint>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"

namespace alpheus {

// Bounds of a ring, as its superline has them. All records that are needed lie
// between the two, and bytes are written only there.
struct RingBounds {
  LogPosition head;
  RingOffset ceiling;

  bool operator==(const RingBounds&) const = default;
};

// Each step costs one update of the superline; a search of as many bytes takes
// about a millisecond.
inline constexpr uint64_t kCeilingStepBytes = uint64_t{4} << 20;

// Returns the ceiling, `step` bytes after `end` as far as CLG2 allows.
// Requires: head <= end; `step` is a multiple of a line.
inline RingOffset CeilingAfter(RingOffset end, RingOffset head,
                               uint64_t ring_capacity, uint64_t step) {
  return std::min(end + step, head + ring_capacity);
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_SPACE_CEILING_H_
