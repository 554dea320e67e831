// SPDX-License-Identifier: Apache-2.0
// etcd: puts into an etcd of as many members as there are replicas, which
// answers when a majority of them has written and synced its log.
//
// Idea: gRPC is etcd's own interface and its fastest; the JSON gateway is one
// hop more inside the server. One channel is kept, to the leader, so that no
// member passes requests on. Three messages of a few fields are put together by
// hand (protobuf_fields.h).
//
// References: etcd 3.4, etcdserver/etcdserverpb/rpc.proto (Put, Status).
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_H_

#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kEtcdName = "etcd";

// Every turn has members of its own. The maker's errors: NotFound (no etcd,
// built without gRPC, or asked for what it does not do: another quorum than the
// majority, batches).
MakeCandidate Etcd();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_H_
