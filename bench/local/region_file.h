// SPDX-License-Identifier: Apache-2.0
// region_file: names of the files that candidates work on. They are removed as
// soon as they are mapped, so that a run that is killed leaves nothing.
#ifndef ALPHEUS_BENCH_LOCAL_REGION_FILE_H_
#define ALPHEUS_BENCH_LOCAL_REGION_FILE_H_

#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "bench/local/candidate.h"

namespace alpheus::bench {

inline std::string RegionFilePath(const Workload& workload,
                                  const char* candidate) {
  return absl::StrCat(workload.folder, "/alpheus-bench-", getpid(), "-",
                      candidate);
}

inline void RemoveRegionFile(const std::string& path) {
  // A file that stays costs space, no measurement.
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_REGION_FILE_H_
