// SPDX-License-Identifier: Apache-2.0
// atomicity: Arcadia's atomicity primitive (§3, listing 2): a value at a fixed
// place that is replaced as a whole or not at all.
//
// Idea: two copies, each with a sequence number and a checksum, written one
// after the other. Both are equal when Write returns, so that losing either
// copy later never brings back an older value.
//
// Thread safety: one thread at a time per cell.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_ATOMICITY_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_ATOMICITY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/persistent_region.h"

namespace alpheus {

// Where a cell lies in its region.
struct AtomicPlace {
  size_t offset = 0;      // a multiple of 4,096
  size_t bytes_max = 0;   // largest value
  uint64_t identity = 0;  // any number of the caller's, the same to read
};

// Returns the bytes that a cell takes in the region: two copies on pages of
// their own.
size_t AtomicBytes(size_t bytes_max);

// Replaces the value. Persisted in both copies when it returns OK; after a
// crash before that, the old value or the new one is read.
// Errors: InvalidArgument (place not aligned, value too large); OutOfRange
// (does not fit the region); Unavailable (medium: old or new).
absl::Status AtomicWrite(PersistentRegion& region, const AtomicPlace& place,
                         std::span<const std::byte> value);

// Returns the value.
// Errors: InvalidArgument, OutOfRange as above; NotFound (both copies are all
// zeros: never written); DataLoss (neither copy can be read).
absl::StatusOr<std::vector<std::byte>> AtomicRead(
    const PersistentRegion& region, const AtomicPlace& place);

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_ATOMICITY_H_
