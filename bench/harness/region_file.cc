// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/region_file.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

std::string RegionFilePath(const Workload& workload, const char* candidate) {
  static std::atomic<uint64_t> count{0};
  return absl::StrCat(workload.folder, "/alpheus-bench-", getpid(), "-",
                      candidate, "-", count.fetch_add(1));
}

void RemoveRegionFile(const std::string& path) {
  // A file that stays costs space, no measurement.
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

absl::StatusOr<Region> MakeScratchRegion(const Workload& workload,
                                         const char* candidate) {
  const ScratchFile file(RegionFilePath(workload, candidate));
  ALPHEUS_ASSIGN_OR_RETURN(Region region,
                           Region::Create(file.path(), workload.ring_bytes));
  if (region.medium() != RegionMedium::kPersistentMemory) {
    return absl::FailedPreconditionError(absl::StrCat(
        file.path(),
        ": libpmem does not take it for persistent memory, so the logs "
        "would call msync; name a folder on tmpfs or DAX by --dir"));
  }
  return region;
}

}  // namespace alpheus::bench
