// SPDX-License-Identifier: Apache-2.0
// floor_replica: one process's memory for the records, where it persists them
// one after the other, lap by lap.
//
// The bytes are copied through the cache and flushed (clwb), then fenced, as in
// the log's backups.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_REPLICA_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_REPLICA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "bench/harness/region_file.h"
#include "log/base/status_macros.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"

namespace alpheus::bench::replicated {

class FloorReplica {
 public:
  // Makes a replica of zeros, whose file is already removed. Errors: as
  // MakeScratchRegion.
  static absl::StatusOr<FloorReplica> Make(const std::string& folder,
                                           uint64_t ring_bytes) {
    const Workload workload{.folder = folder, .ring_bytes = ring_bytes};
    ALPHEUS_ASSIGN_OR_RETURN(Region region,
                             MakeScratchRegion(workload, "replica"));
    return FloorReplica(std::move(region));
  }

  std::span<std::byte> bytes() const { return region_.bytes(); }

  // Returns the place of the next `bytes` bytes. Requires: at most the
  // replica's size.
  std::span<std::byte> Next(uint64_t bytes) {
    if (end_ + bytes > region_.bytes().size()) end_ = 0;
    end_ += bytes;
    return region_.bytes().subspan(end_ - bytes, bytes);
  }

  void Store(std::span<std::byte> to, std::span<const std::byte> from) {
    pmem_.Copy(to.data(), from.data(), from.size());
  }
  void Persist(std::span<const std::byte> bytes) {
    pmem_.Flush(bytes.data(), bytes.size());
    pmem_.Fence();
  }

 private:
  explicit FloorReplica(Region region)
      : region_(std::move(region)),
        pmem_({.auto_flush = LibpmemPersistence::DetectAutoFlush()}) {}

  Region region_;
  LibpmemPersistence pmem_;
  uint64_t end_ = 0;
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_FLOOR_REPLICA_H_
