// SPDX-License-Identifier: Apache-2.0
// In place of etcd.cc where the client's library is not there, or can't be
// used.
#include "bench/replicated/peers/etcd.h"

namespace alpheus::bench::replicated {

MakeCandidate Etcd() {
  return [](const Work&) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    return absl::NotFoundError(
        "built without gRPC (Debian: libgrpc++-dev), or with a sanitizer");
  };
}

}  // namespace alpheus::bench::replicated
