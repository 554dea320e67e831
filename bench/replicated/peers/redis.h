// SPDX-License-Identifier: Apache-2.0
// redis: a stream of Redis, with as many replicas as there are backups, each
// server writing and syncing its append-only file before it answers.
//
// Idea: XADD and WAIT leave in one send; WAIT answers when that many replicas
// have acknowledged the offset. Redis 7.0 acknowledges what it has applied;
// since its loop syncs the file before it sends what was queued, an answer
// means a synced file here, too.
//
// References: https://redis.io/docs/latest/commands/wait/
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_H_

#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kRedisName = "redis";

// Every turn has servers of its own. The maker's errors: NotFound (no server,
// or built without its client).
MakeCandidate Redis();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_H_
