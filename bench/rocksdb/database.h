// SPDX-License-Identifier: Apache-2.0
// database: a RocksDB database of the benchmark, the same for every place of
// its WAL.
//
// Idea: its write buffer takes all puts of a turn, so nothing is flushed or
// compacted while it is timed, and closing leaves all puts in the WAL.
//
// Thread safety: Put by many threads; the rest by one.
#ifndef ALPHEUS_BENCH_ROCKSDB_DATABASE_H_
#define ALPHEUS_BENCH_ROCKSDB_DATABASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rocksdb/contestant.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"

namespace alpheus::bench::wal {

// Bytes that fit in the write buffer, and so in the WAL.
inline constexpr uint64_t kWriteBufferBytes = uint64_t{64} << 20;

class Database {
 public:
  // Opens the database in `folder`, or makes it.
  // Errors of all: Unavailable (what RocksDB says).
  static absl::StatusOr<Database> Open(const Place& place,
                                       const std::string& folder);
  // Removes it, with its WAL. Requires: not open.
  static absl::Status Destroy(const Place& place, const std::string& folder);

  // Puts; durable on return if `with_sync`, and if there is a WAL.
  absl::Status Put(bool with_sync, std::string_view key,
                   std::string_view value) {
    return ToStatus(
        db_->Put(with_sync ? with_sync_ : without_sync_, key, value));
  }
  // Makes all puts durable.
  absl::Status SyncWal();
  // Counts the keys by reading all of them.
  absl::StatusOr<uint64_t> CountKeys() const;
  // Closes without flushing memtables.
  absl::Status Close();

 private:
  Database(std::unique_ptr<rocksdb::DB> db, bool has_wal);
  static absl::Status ToStatus(const rocksdb::Status& status) {
    return status.ok() ? absl::OkStatus()
                       : absl::UnavailableError(status.ToString());
  }

  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteOptions with_sync_;
  rocksdb::WriteOptions without_sync_;
};

// Returns the bytes that RocksDB appends to a WAL file for such a put.
uint64_t WalBytesOfPut(std::string_view key, std::string_view value);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_DATABASE_H_
