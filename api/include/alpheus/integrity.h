// SPDX-License-Identifier: Apache-2.0
// integrity: Arcadia's integrity primitive (§3, listing 1): bytes in
// persistent memory that are read back whole or not at all.
//
// Idea: header and data carry a checksum each, so that one persist is enough
// and no order is needed. Use it for data that is written once, or whose old
// content is no longer needed. To replace content atomically see atomicity.h.
//
// Thread safety: calls on disjoint places may run concurrently.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_INTEGRITY_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_INTEGRITY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/persistent_region.h"

namespace alpheus {

// Returns the bytes that `data_bytes` of data take in the region, header
// included.
size_t ReliableBytes(size_t data_bytes);

// Writes `data` with its header at `offset`. `identity` names the place (any
// number of the caller's); the same one must be given to read it. Persisted
// when it returns OK; after a crash before that the place may not be readable.
// Errors: OutOfRange (does not fit); Unavailable (medium).
absl::Status ReliableWrite(PersistentRegion& region, size_t offset,
                           uint64_t identity, std::span<const std::byte> data);

// Returns a copy of the data at `offset`.
// Errors: OutOfRange (no room for a header there); DataLoss (torn, damaged,
// never written, or another identity).
absl::StatusOr<std::vector<std::byte>> ReliableRead(
    const PersistentRegion& region, size_t offset, uint64_t identity);

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_INTEGRITY_H_
