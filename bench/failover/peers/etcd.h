// SPDX-License-Identifier: Apache-2.0
// etcd: three members; the leader is lost under load, and the two others elect
// one of them.
//
// The client asks those two in turn who is leader, and writes to the new one. A
// put that a member passes on to a leader that has gone would be lost for
// seconds. No log has to be read, so the size of one does not matter.
#ifndef ALPHEUS_BENCH_FAILOVER_PEERS_ETCD_H_
#define ALPHEUS_BENCH_FAILOVER_PEERS_ETCD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/failover/contestant.h"

namespace alpheus::bench::failover {

inline constexpr const char* kEtcdName = "etcd";
inline constexpr const char* kEtcdFastName = "etcd, silence as ours";

// If `silence_ms` is 0, with etcd's own times: a heartbeat each 100 ms, an
// election after 1 s. Else with an election after `silence_ms`, and five
// heartbeats in that time.
// Errors: NotFound (no etcd, or built without gRPC).
absl::StatusOr<std::unique_ptr<Contestant>> Etcd(std::string folder,
                                                 uint32_t silence_ms = 0);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_PEERS_ETCD_H_
