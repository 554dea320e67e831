// SPDX-License-Identifier: Apache-2.0
// region_use: tells whether a region, or a file or device that will become one,
// holds a log.
//
// Thread safety: one thread, which holds the region's lock.
#ifndef ALPHEUS_LOG_CORE_RING_REGION_USE_H_
#define ALPHEUS_LOG_CORE_RING_REGION_USE_H_

#include <cstddef>
#include <span>

#include "log/pmem/new_file.h"

namespace alpheus {

// Returns how far a region is in use, or a device or file that will become one.
// A format writes both copies of the superline last, and each opening rewrites
// both. So a region was never in use if its second copy is zeros and its first
// one can't be read. If damage hit both copies instead, records are left in its
// ring, and an epoch in its table. `is_device`: the bytes after the watermarks
// may be anything, since devices are wiped at their beginning only. Requires:
// the bytes end with the file or device.
RegionUse UseOfRegion(std::span<std::byte> region, bool is_device);
// The same where what is left of a deleted replica is being made: it holds no
// record, so one that a killed process left there may be made again.
RegionUse UseOfRemoved(std::span<std::byte> region, bool is_device);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_REGION_USE_H_
