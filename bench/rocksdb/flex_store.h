// SPDX-License-Identifier: Apache-2.0
// flex_store: WAL files in one region, each appended to from user space as FLEX
// does it. A baseline of the benchmarks.
//
// Idea: the region is divided into slots. A slot is the number of its file and
// a FlexLog, of which a file uses the steps only: bytes are copied past the
// cache and fenced, then the tail is moved and fenced. RocksDB's records have
// checksums of their own, so none is added. All pages are there before a byte
// is appended, as FLEX asks.
//
// Invariants:
//   FS1. A slot is a file's if, and only if, the number in its first line is
//        not 0; what its tail covers is persistent.
// Persistence: the number is one 8-byte word, written after the tail of an
// empty file.
// Thread safety: one thread at a time appends to a file, and nobody reads it
// meanwhile; all else concurrently.
// References: flex_log.h; pmem-rocksdb, which Arcadia §5.6 compares with.
#ifndef ALPHEUS_BENCH_ROCKSDB_FLEX_STORE_H_
#define ALPHEUS_BENCH_ROCKSDB_FLEX_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/local/candidates/flex_log.h"
#include "log/base/mutex.h"
#include "log/pmem/region.h"

namespace alpheus::bench::wal {

class FlexStore {
 public:
  static constexpr size_t kSlots = 4;

  // Makes an empty region there. Errors: as Region::Create;
  // FailedPrecondition (libpmem does not take it for persistent memory).
  static absl::Status Format(const std::string& path, uint64_t bytes);
  // Finds the files of a region. Errors: as Region::OpenForWriting.
  static absl::StatusOr<std::unique_ptr<FlexStore>> Open(
      const std::string& path);

  // Null if there is none.
  std::shared_ptr<FlexLog> Find(uint64_t number) const;
  std::vector<uint64_t> List() const;
  // An empty file, in place of one of that number.
  // Errors: ResourceExhausted (no slot is free).
  absl::StatusOr<std::shared_ptr<FlexLog>> Create(uint64_t number);
  // False: there is none.
  bool Remove(uint64_t number);

  // Durable when it returns. False, and nothing stored: the slot is full.
  static bool Append(FlexLog& file, std::span<const std::byte> bytes);

 private:
  struct Slot {
    std::byte* number_on_media;  // 8 bytes, on a line of its own
    std::span<std::byte> memory;
  };

  explicit FlexStore(Region region);
  static void PersistNumber(const Slot& slot, uint64_t number);

  const Region region_;
  mutable Mutex mutex_;
  std::vector<Slot> free_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::pair<Slot, std::shared_ptr<FlexLog>>> files_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::bench::wal

#endif  // ALPHEUS_BENCH_ROCKSDB_FLEX_STORE_H_
