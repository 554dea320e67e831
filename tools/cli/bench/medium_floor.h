// SPDX-License-Identifier: Apache-2.0
// medium_floor: the minimum work of a medium to persist the bytes of one
// record: its lines stored and one fence; in a plain file also one write and
// one fdatasync, without a mapping.
//
// Thread safety: Persist on places that don't overlap.
#ifndef ALPHEUS_TOOLS_CLI_BENCH_MEDIUM_FLOOR_H_
#define ALPHEUS_TOOLS_CLI_BENCH_MEDIUM_FLOOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/pmem/region.h"

namespace alpheus::cli {

class MediumFloor {
 public:
  virtual ~MediumFloor() = default;

  // Returns the number of records that fit the region.
  virtual uint64_t places() const = 0;
  // Returns the way in which it persists, in words.
  virtual const char* way() const = 0;
  // Persists one record. Errors: Unavailable (medium).
  virtual absl::Status Persist(uint64_t place) = 0;
};

// Makes a floor that stores through the persistence primitive of `region`'s
// medium; on persistent memory past the cache or through it, as `past_cache`
// says. Requires: payload_bytes fit the region.
// Requires: payload_bytes fit the region.
std::unique_ptr<MediumFloor> MakeMediumFloor(Region region,
                                             uint64_t payload_bytes,
                                             bool past_cache);

// Makes a floor that writes into a new file of `file_bytes` at `path`; the name
// is free again on return. Each block was written once, so that the file system
// allocates nothing. Requires: payload_bytes fit the file. Errors: those of
// making a file (file_error.h).
absl::StatusOr<std::unique_ptr<MediumFloor>> MakeWriteFloor(
    const std::string& path, uint64_t file_bytes, uint64_t payload_bytes);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_BENCH_MEDIUM_FLOOR_H_
