// SPDX-License-Identifier: Apache-2.0
// medium_floor: the least that a medium needs to make the bytes of one record
// persistent: its lines stored and one fence, nothing else.
//
// Thread safety: Persist on places that do not overlap.
#ifndef ALPHEUS_TOOLS_CLI_MEDIUM_FLOOR_H_
#define ALPHEUS_TOOLS_CLI_MEDIUM_FLOOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/pmem/region.h"

namespace alpheus::cli {

class MediumFloor {
 public:
  virtual ~MediumFloor() = default;

  // Records that fit the region.
  virtual uint64_t places() const = 0;
  // Errors: Unavailable (medium).
  virtual absl::Status Persist(uint64_t place) = 0;
};

// Stores through the persistence primitive that the medium of `region` needs;
// on persistent memory past the cache or through it, as `past_cache` says.
// Requires: payload_bytes fit the region.
std::unique_ptr<MediumFloor> MakeMediumFloor(Region region,
                                             uint64_t payload_bytes,
                                             bool past_cache);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_MEDIUM_FLOOR_H_
