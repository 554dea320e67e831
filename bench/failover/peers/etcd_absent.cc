// SPDX-License-Identifier: Apache-2.0
// In place of etcd.cc where the client's library is not there.
#include "bench/failover/peers/etcd.h"

namespace alpheus::bench::failover {

absl::StatusOr<std::unique_ptr<Contestant>> Etcd(std::string /*folder*/,
                                                 uint32_t /*silence_ms*/) {
  return absl::NotFoundError(
      "built without gRPC (Debian: libgrpc++-dev), or with a sanitizer");
}

}  // namespace alpheus::bench::failover
