// SPDX-License-Identifier: Apache-2.0
// flex_wal: RocksDB with its WAL files in a FLEX region (flex_store.h).
#ifndef ALPHEUS_BENCH_ROCKSDB_FLEX_WAL_H_
#define ALPHEUS_BENCH_ROCKSDB_FLEX_WAL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rocksdb/contestant.h"

namespace alpheus::bench::wal {

inline constexpr const char* kFlexName = "flex";

// A region of so many bytes in a new folder below `parent`, removed when this
// goes. Errors: as FlexStore::Format; Unavailable.
absl::StatusOr<std::unique_ptr<Contestant>> FlexWal(const std::string& parent,
                                                    uint64_t region_bytes);

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_FLEX_WAL_H_
