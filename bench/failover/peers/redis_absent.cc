// SPDX-License-Identifier: Apache-2.0
// In place of redis.cc where the client's library is not there.
#include "bench/failover/peers/redis.h"

namespace alpheus::bench::failover {

absl::StatusOr<std::unique_ptr<Contestant>> Redis(std::string /*folder*/,
                                                  uint32_t /*silence_ms*/) {
  return absl::NotFoundError("built without hiredis (Debian: libhiredis-dev)");
}

}  // namespace alpheus::bench::failover
