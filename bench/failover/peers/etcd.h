// SPDX-License-Identifier: Apache-2.0
// etcd: three members; the leader is lost under load, and the two others elect
// one of them.
//
// The client asks those two in turn who is leader, and puts to the new one: a
// put that a member has passed on to a leader that has gone would be lost for
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

// With etcd's own times: a heartbeat each 100 ms, an election after 1 s. With
// `silence_ms`: an election after that, a heartbeat five times as often.
// Errors: NotFound (no etcd, or built without gRPC).
absl::StatusOr<std::unique_ptr<Contestant>> Etcd(std::string folder,
                                                 uint32_t silence_ms = 0);

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_PEERS_ETCD_H_
