// SPDX-License-Identifier: Apache-2.0
// format_region: writes the fixed part of an empty log into a new region.
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

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_FORMAT_REGION_H_
