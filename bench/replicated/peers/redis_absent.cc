// SPDX-License-Identifier: Apache-2.0
// In place of redis.cc where the client's library is not there.
#include "bench/replicated/peers/redis.h"

namespace alpheus::bench::replicated {

MakeCandidate Redis() {
  return [](const Work&) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    return absl::NotFoundError(
        "built without hiredis (Debian: libhiredis-dev)");
  };
}

}  // namespace alpheus::bench::replicated
