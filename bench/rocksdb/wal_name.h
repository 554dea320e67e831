// SPDX-License-Identifier: Apache-2.0
// wal_name: tells WAL files from others by their path, as RocksDB names them:
// NUMBER.log.
#ifndef ALPHEUS_BENCH_ROCKSDB_WAL_NAME_H_
#define ALPHEUS_BENCH_ROCKSDB_WAL_NAME_H_

#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace alpheus::bench::wal {

// Returns the number; empty if the path names another file. WAL files are
// numbered from 1 on.
inline std::optional<uint64_t> WalNumberOf(absl::string_view path) {
  absl::string_view name = path.substr(path.rfind('/') + 1);
  uint64_t number = 0;
  if (!absl::ConsumeSuffix(&name, ".log") || !absl::SimpleAtoi(name, &number) ||
      number == 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_WAL_NAME_H_
