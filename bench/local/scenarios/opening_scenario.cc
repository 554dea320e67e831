// SPDX-License-Identifier: Apache-2.0
// Log::Open alone, by size of the log, after a crash and after a clean close.
//
// An image of a full log's file is taken while it is open, so that it looks as
// after a crash. Each turn opens a fresh copy, closes it, and opens it again.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/harness/region_file.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

constexpr uint64_t kPayloadBytes = 1024;
constexpr uint64_t kMiB = 1 << 20;

absl::Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("copy of ", from, " to ", to, ": ", error.message()));
}

class Opener {
 public:
  explicit Opener(const Workload& workload)
      : workload_(workload), image_(RegionFilePath(workload, "opening")) {}

  // Makes the image of a full log.
  absl::Status Write() {
    const ScratchFile file(RegionFilePath(workload_, "opening-open"));
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                             MakeLog(file.path(), workload_));
    const std::vector<std::byte> payload(kPayloadBytes, std::byte{0x5a});
    ForceOptions rarely;
    rarely.frequency = 64;
    for (;; ++records_) {
      const absl::Status appended = log->Append(payload, rarely).status();
      if (absl::IsResourceExhausted(appended)) break;
      ALPHEUS_RETURN_IF_ERROR(appended);
    }
    ALPHEUS_RETURN_IF_ERROR(log->Force(log->next_lsn() - 1));
    return CopyFile(file.path(), image_.path());
  }

  absl::Status Turn() {
    const ScratchFile copy(RegionFilePath(workload_, "opening-copy"));
    ALPHEUS_RETURN_IF_ERROR(CopyFile(image_.path(), copy.path()));
    ALPHEUS_RETURN_IF_ERROR(OpenAndClose(copy.path(), &crashed_ms_));
    return OpenAndClose(copy.path(), &closed_ms_);
  }

  void Report(std::vector<Measurement>* measurements) const {
    for (const auto& [metric, samples] :
         {std::pair("after a crash", &crashed_ms_),
          std::pair("after a close", &closed_ms_)}) {
      measurements->push_back(
          {.scenario = "opening",
           .candidate = "alpheus",
           .metric = metric,
           .unit = "ms",
           .parameters = {{"bytes", kPayloadBytes},
                          {"log_mib", workload_.ring_bytes / kMiB}},
           .samples = *samples,
           .details = {{"records", static_cast<double>(records_)}}});
    }
  }

 private:
  absl::Status OpenAndClose(const std::string& path, std::vector<double>* ms) {
    LogOptions options;
    options.path = path;
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                             Log::Open(options));
    ms->push_back(static_cast<double>(NowNanos() - start) / 1e6);
    if (log->report().end_lsn.value != records_) {
      return absl::InternalError(
          absl::StrCat("opened with ", log->report().end_lsn.value,
                       " records instead of ", records_));
    }
    return log->Close();
  }

  const Workload workload_;
  const ScratchFile image_;
  uint64_t records_ = 0;  // in the image
  std::vector<double> crashed_ms_;
  std::vector<double> closed_ms_;
};

}  // namespace

absl::Status MeasureOpening(const Settings& settings, Report* report) {
  std::vector<std::unique_ptr<Opener>> all;
  for (const uint64_t log_mib : settings.opening_mib) {
    all.push_back(
        std::make_unique<Opener>(Workload{.folder = settings.folder,
                                          .ring_bytes = log_mib * kMiB,
                                          .payload_bytes = kPayloadBytes}));
    ALPHEUS_RETURN_IF_ERROR(all.back()->Write());
  }
  ALPHEUS_RETURN_IF_ERROR(Interleave(settings.rounds, all.size(),
                                     [&](size_t i) { return all[i]->Turn(); }));
  for (const auto& opener : all) opener->Report(&report->measurements);
  return absl::OkStatus();
}

}  // namespace alpheus::bench
