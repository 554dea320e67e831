// SPDX-License-Identifier: Apache-2.0
// format_region: writes the fixed part of an empty log into a new region.
//
// A replica whose log is deleted keeps the fixed part and nothing else.
//
// Persistence: epoch table and watermarks first, the superline last, so that a
// crash leaves either no log or a whole, empty one.
// Thread safety: one thread, which holds the region's lock.
// References: protocol P-A4 ("A new log is formatted ...").
#ifndef ALPHEUS_LOG_CORE_RING_FORMAT_REGION_H_
#define ALPHEUS_LOG_CORE_RING_FORMAT_REGION_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "log/core/ring/format_identity.h"
#include "log/format/layout.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// Writes an empty log: epoch 0, head LSN 1, empty epoch table. Durable when it
// returns OK. The ring's bytes are left as they are: nothing in them can
// validate under a nonce that is drawn later.
// Requires: region.size() >= layout.region_bytes.
// Errors: Unavailable (medium).
template <Persistence P>
absl::Status FormatRegion(P& pmem, std::span<std::byte> region,
                          const Layout& layout, const FormatIdentity& identity);

// Layout of a region that FormatRemoved writes. Its ring is never written.
inline Layout LayoutOfRemoved() {
  return *Layout::ForRing(kPageBytes, /*table_capacity=*/1);
}

// Writes what is left of the replica `of` once its log is deleted: its
// superline with the deletion decided, and no record. Durable when it returns
// OK. Requires: region.size() >= LayoutOfRemoved().region_bytes. Errors:
// Unavailable (medium).
template <Persistence P>
absl::Status FormatRemoved(P& pmem, std::span<std::byte> region,
                           const Superline& of);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_FORMAT_REGION_H_
