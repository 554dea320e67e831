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
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/pmem/new_file.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// Identities of a new log, drawn by the caller: the same on all replicas.
struct FormatIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
  Configuration configuration;
  // Incarnation of this replica; 0: the one in the configuration. With another
  // one the replica is blank: it will replace one that was lost.
  uint64_t incarnation = 0;
};

// Fresh identities for a log in local mode: node 0, N = W = 1.
FormatIdentity NewLocalIdentity(RandomSource& random);

// Writes an empty log: epoch 0, head LSN 1, empty epoch table. Durable when it
// returns OK. The ring's bytes are left as they are: nothing in them can
// validate under a nonce that is drawn later.
// Requires: region.size() >= layout.region_bytes.
// Errors: Unavailable (medium).
template <Persistence P>
absl::Status FormatRegion(P& pmem, std::span<std::byte> region,
                          const Layout& layout, const FormatIdentity& identity);

// Returns how far a region is in use, or a device or file that will become one.
// A format writes both copies of the superline last, and each opening rewrites
// both. So a region was never in use if its second copy is zeros and its first
// one can't be read, unless damage hit both copies; then records are left in
// its ring, and an epoch in its table. `is_device`: the bytes after the
// watermarks may be anything, since devices are wiped at their beginning only.
// Requires: the bytes end with the file or device.
RegionUse UseOfRegion(std::span<std::byte> region, bool is_device);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_FORMAT_REGION_H_
