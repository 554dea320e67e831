// SPDX-License-Identifier: Apache-2.0
// medium_floor: the least that a medium needs to make the bytes of one record
// persistent: its lines stored and one fence, nothing else; in a plain file
// also one write and one fdatasync, without a mapping.
//
// Thread safety: Persist on places that do not overlap.
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

  // Records that fit the region.
  virtual uint64_t places() const = 0;
  // How it persists, in words.
  virtual const char* way() const = 0;
  // Errors: Unavailable (medium).
  virtual absl::Status Persist(uint64_t place) = 0;
};

// Stores through the persistence primitive that the medium of `region` needs;
// on persistent memory past the cache or through it, as `past_cache` says.
// Requires: payload_bytes fit the region.
std::unique_ptr<MediumFloor> MakeMediumFloor(Region region,
                                             uint64_t payload_bytes,
                                             bool past_cache);

// Writes into a file of `file_bytes` that it makes at `path`, where none may
// be: the name is free again when this returns. Each block has been written
// once, so that the file system has nothing to allocate. Requires:
// payload_bytes fit the file. Errors: those of making a file (file_error.h).
absl::StatusOr<std::unique_ptr<MediumFloor>> MakeWriteFloor(
    const std::string& path, uint64_t file_bytes, uint64_t payload_bytes);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_BENCH_MEDIUM_FLOOR_H_
