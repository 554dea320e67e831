// SPDX-License-Identifier: Apache-2.0
// etcd: puts into an etcd with as many members as replicas, which answers when
// a majority of them has written and synced its log.
//
// Idea: gRPC is etcd's own and fastest interface; the JSON gateway is one more
// hop inside the server. One channel to the leader is kept, so that no member
// passes requests on.
//
// References: etcd_cluster.h.
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_H_

#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kEtcdName = "etcd";

// Makes a candidate; every turn has members of its own. Its errors: NotFound
// (no etcd, built without gRPC, or unsupported work: another quorum than the
// majority, batches).
MakeCandidate Etcd();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_H_
