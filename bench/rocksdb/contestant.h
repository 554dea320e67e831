// SPDX-License-Identifier: Apache-2.0
// contestant: a place for the WAL of a RocksDB database, to be timed.
//
// Idea: RocksDB, its options, its memtable and the folder of the database are
// the same for all; only the place of the WAL differs. So the difference
// between two contestants is that of their WALs.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_ROCKSDB_CONTESTANT_H_
#define ALPHEUS_BENCH_ROCKSDB_CONTESTANT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rocksdb/location.h"

namespace alpheus::bench::wal {

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual std::string name() const = 0;
  // Returns false if nothing is left to recover from.
  virtual bool has_wal() const { return true; }

  // A turn: Begin, databases one after the other, End. Code that uses a core
  // while it waits runs only in between.
  // Errors of all: those of the log, or Unavailable.
  virtual absl::StatusOr<Place> Begin() = 0;
  // Releases everything that this process has open, for another process.
  // Requires: within a turn; no database is open; has_wal.
  // Requires: within a turn; no database is open; has_wal.
  virtual absl::StatusOr<Location> Finish() = 0;
  // Takes it back, as a process that starts now would find it.
  virtual absl::StatusOr<Place> TakeBack() = 0;
  virtual absl::Status End() = 0;
};

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_CONTESTANT_H_
