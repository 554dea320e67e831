// SPDX-License-Identifier: Apache-2.0
// region_file: the files that candidates work on. They are removed as soon as
// they are mapped, so that a run that is killed leaves nothing.
#ifndef ALPHEUS_BENCH_HARNESS_REGION_FILE_H_
#define ALPHEUS_BENCH_HARNESS_REGION_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"
#include "log/pmem/region.h"

namespace alpheus::bench {

// A name that no other file has, in the workload's folder.
std::string RegionFilePath(const Workload& workload, const char* candidate);

void RemoveRegionFile(const std::string& path);

// Removes the file when it goes.
class ScratchFile {
 public:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  ~ScratchFile() { RemoveRegionFile(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// workload.ring_bytes of zeros, whose file is removed already.
// Errors: FailedPrecondition (libpmem does not take it for persistent memory);
// as Region::Create.
absl::StatusOr<Region> MakeScratchRegion(const Workload& workload,
                                         const char* candidate);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_REGION_FILE_H_
