// SPDX-License-Identifier: Apache-2.0
// wal_options: options of the RocksDB plugin, from its URI or a file.
//
//   alpheus:///mnt/pmem/wal                      a log in this file
//   alpheus:///mnt/pmem/wal?create=64MiB         made if it does not exist
//   alpheus:///mnt/pmem/wal?cluster=C&node=1     replicated, one replica here
//   alpheus:?cluster=C&node=1                    replicated, none here
//   alpheus:?cluster=C&node=1&take_over=/fs/db1  moved there when it is opened
//   alpheus:?cluster=C&follow=true               of another process, to read
//   alpheus:///mnt/pmem/wals/?create=64MiB       one in this folder for each
//                                                database (path ends in /)
//   alpheus:?file=/etc/wal.conf                  lines `key = value`
//
// References: docs/use/rocksdb.md#options.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_OPTIONS_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/options.h"

namespace alpheus::wal {

struct WalOptions {
  LogOptions log;
  // Size of the region to make if log.path does not exist; 0: none is made.
  uint64_t create_bytes = 0;
  // Directory whose WAL files are kept in the log; empty: that of the first WAL
  // file, or as the log says.
  std::string wal_directory = {};
  // Treats the database that is opened as the log's own, whatever the log says,
  // even if it may have had another WAL.
  bool adopt = false;
  // If log and directory do not vouch for each other (directory_vouch.h), the
  // log's WAL is replayed, or dropped. At most one of the two.
  bool keep_wal = false;
  bool drop_wal = false;
  // Directory in which this process works on the database, wherever it was
  // before (take_over.h); empty: the present one.
  std::string take_over = {};
  // The log is another process's, and its database is only read
  // (wal_following_file_system.h).
  bool follow = false;
  // log.path is a folder of logs (wal_folder_file_system.h).
  bool is_folder = false;
  // Limit on memtables before RocksDB flushes them, if its options have none
  // (interposed.h). Empty: half the ring's room for data; 0: no limit.
  std::optional<uint64_t> memtable_bytes = {};
  // Time that a write waits for room in a full ring, in milliseconds.
  uint32_t stall_ms = 10'000;
};

// Parses a URI. Errors: InvalidArgument (the message names the mistake and the
// alternatives); NotFound, Unavailable (file=).
absl::StatusOr<WalOptions> ParseWalUri(const std::string& uri);

// Parses the text of a file; comments begin with #. Errors: InvalidArgument.
absl::Status ParseWalFile(const std::string& text, WalOptions& options);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_OPTIONS_H_
