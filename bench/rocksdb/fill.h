// SPDX-License-Identifier: Apache-2.0
// fill: threads that put new keys into a database; each put is timed.
//
// Thread safety: one thread, which starts the putting threads.
#ifndef ALPHEUS_BENCH_ROCKSDB_FILL_H_
#define ALPHEUS_BENCH_ROCKSDB_FILL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/rocksdb/database.h"

namespace alpheus::bench::wal {

inline constexpr size_t kKeyBytes = 16;

struct Fill {
  bool is_random = false;  // else each thread puts rising keys
  bool with_sync = false;
  uint64_t value_bytes = 0;
  int threads = 1;
  uint64_t warm_up_puts = 0;  // of all threads together; not timed
  uint64_t puts = 0;          // of all threads together; timed
  // Time after which a thread puts no more.
  int64_t duration_ns_max = 0;
};

struct FillTimes {
  std::vector<double> put_ns;  // of all threads
  int64_t elapsed_ns = 0;      // from the first start to the last end
};

// Fills with new keys, in each database the same ones in the same order.
// Errors: those of Put.
// Errors: those of Put.
absl::StatusOr<FillTimes> RunFill(Database& database, const Fill& fill);

// Returns the bytes of the WAL for one put.
uint64_t WalBytesPerPut(uint64_t value_bytes);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_FILL_H_
