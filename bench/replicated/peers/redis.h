// SPDX-License-Identifier: Apache-2.0
// redis: a stream of Redis, with as many replicas as backups; each server
// writes and syncs its append-only file before it answers.
//
// Idea: XADD and WAIT leave in one send; WAIT answers when that many replicas
// have acknowledged the offset. Redis 7.0 acknowledges applied commands. Its
// loop syncs the file before it sends queued answers, so an answer means a
// synced file here too.
//
// References: https://redis.io/docs/latest/commands/wait/
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_H_

#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

inline constexpr const char* kRedisName = "redis";

// Makes a candidate; every turn has servers of its own. Its errors: NotFound
// (no server, or built without its client).
MakeCandidate Redis();

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_REDIS_H_
