// SPDX-License-Identifier: Apache-2.0
// redis: a server with two replicas, and three Sentinels; the primary is lost
// under load, and the Sentinels promote a replica.
//
// A record counts once its server and one replica have synced it, as with the
// log. The client asks both replicas in turn whether they are primary. Records
// that were acknowledged before may be lost: docs/results/peers.md.
#ifndef ALPHEUS_BENCH_FAILOVER_PEERS_REDIS_H_
#define ALPHEUS_BENCH_FAILOVER_PEERS_REDIS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {

inline constexpr const char* kRedisName = "redis, silence as ours";

// `silence_ms`: down-after-milliseconds, in place of Sentinel's 30 s. Errors:
// NotFound (no Redis, or built without its client).
absl::StatusOr<std::unique_ptr<Contestant>> Redis(std::string folder,
                                                  uint32_t silence_ms);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_PEERS_REDIS_H_
