// SPDX-License-Identifier: Apache-2.0
// crash: a process that fills a database, so that all puts are in its WAL and
// durable, and is then killed by SIGKILL, with everything still open.
//
// The kernel keeps what the process has written: a process dies, not its host.
#ifndef ALPHEUS_BENCH_ROCKSDB_CRASH_H_
#define ALPHEUS_BENCH_ROCKSDB_CRASH_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "bench/rocksdb/location.h"

namespace alpheus::bench::wal {

struct CrashFill {
  Location location;
  std::string database_folder;
  uint64_t puts = 0;  // of one thread, with random keys
  uint64_t value_bytes = 0;
};

// Fills in a process of its own, which is dead on return. Errors: Unavailable
// (it ended before; see its output).
// Errors: Unavailable (it ended before; see what it wrote).
absl::Status FillAndKill(const CrashFill& fill);

// First argument of that process.
inline constexpr const char* kFillMode = "fill";

// Runs as that process: returns only if something fails.
// Errors: InvalidArgument (of the arguments); those of the database.
absl::Status FillUntilKilled(std::span<char* const> arguments);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_CRASH_H_
