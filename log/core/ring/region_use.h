// SPDX-License-Identifier: Apache-2.0
// region_use: whether a region, or what is to become one, holds a log.
//
// Thread safety: one thread, which holds the region's lock.
#ifndef ALPHEUS_LOG_CORE_RING_REGION_USE_H_
#define ALPHEUS_LOG_CORE_RING_REGION_USE_H_

#include <cstddef>
#include <span>

#include "log/pmem/new_file.h"

namespace alpheus {

// What a region, or the device or file that is to become one, holds already.
// A format writes both copies of the superline last, and each opening both
// again. So a region whose second copy is zeros, and whose first one can't be
// read, was never one, unless damage took both; then records are left in its
// ring, and an epoch in its table. `is_device`: what lies behind the watermarks
// may be anything, as whoever wants to use it anew wipes its beginning only.
// Requires: the bytes end with the file or device.
RegionUse UseOfRegion(std::span<std::byte> region, bool is_device);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_REGION_USE_H_
