// SPDX-License-Identifier: Apache-2.0
// replica: the memory that one process keeps of the records, where it persists
// them one behind the other, lap by lap.
//
// The bytes are copied through the cache and flushed (clwb), then fenced, as
// the log's backups do it.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_REPLICA_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_REPLICA_H_

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

class Replica {
 public:
  // Zeros, whose file is removed already. Errors: as MakeScratchRegion.
  static absl::StatusOr<Replica> Make(const std::string& folder,
                                      uint64_t ring_bytes) {
    const Workload workload{.folder = folder, .ring_bytes = ring_bytes};
    ALPHEUS_ASSIGN_OR_RETURN(Region region,
                             MakeScratchRegion(workload, "replica"));
    return Replica(std::move(region));
  }

  std::span<std::byte> bytes() const { return region_.bytes(); }

  // Where `bytes` bytes go next. Requires: no more than there are.
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
  explicit Replica(Region region)
      : region_(std::move(region)),
        pmem_({.auto_flush = LibpmemPersistence::DetectAutoFlush()}) {}

  Region region_;
  LibpmemPersistence pmem_;
  uint64_t end_ = 0;
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_REPLICA_H_
