// SPDX-License-Identifier: Apache-2.0
#include "bench/local/scenarios/log_image.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "bench/harness/region_file.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

absl::StatusOr<uint64_t> Fill(Log& log, const std::vector<std::byte>& payload) {
  ForceOptions rarely;
  rarely.frequency = 64;
  for (uint64_t count = 0;; ++count) {
    const absl::Status appended = log.Append(payload, rarely).status();
    if (appended.ok()) continue;
    if (!absl::IsResourceExhausted(appended)) return appended;
    ALPHEUS_RETURN_IF_ERROR(log.Force(log.next_lsn() - 1));
    return count;
  }
}

}  // namespace

absl::Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("copy of ", from, " to ", to, ": ", error.message()));
}

absl::StatusOr<uint64_t> WriteLogImage(const Workload& workload,
                                       const std::string& image) {
  const std::vector<std::byte> payload(workload.payload_bytes, std::byte{0x5a});
  const ScratchFile file(RegionFilePath(workload, "alpheus-open"));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                           MakeLog(file.path(), workload));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t records, Fill(*log, payload));
  ALPHEUS_RETURN_IF_ERROR(CopyFile(file.path(), image));
  return records;
}

}  // namespace alpheus::bench
