// SPDX-License-Identifier: Apache-2.0
// peers: puts into etcd, and entries of a stream of Redis that a replica has,
// too. Each turn has three servers of its own.
#ifndef ALPHEUS_BENCH_SERVICE_CONTESTANTS_PEERS_H_
#define ALPHEUS_BENCH_SERVICE_CONTESTANTS_PEERS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/service/load/contestant.h"

namespace alpheus::bench::service {

inline constexpr const char* kEtcdName = "etcd";
inline constexpr const char* kRedisName = "redis";

// Each record under way has a thread and a channel of its own, to the leader.
// Errors: NotFound (no etcd, or built without gRPC).
absl::StatusOr<std::unique_ptr<Contestant>> Etcd(const std::string& folder);
// Records under way leave together, with one WAIT. Errors: NotFound (no Redis,
// or built without its client).
absl::StatusOr<std::unique_ptr<Contestant>> Redis(const std::string& folder);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CONTESTANTS_PEERS_H_
