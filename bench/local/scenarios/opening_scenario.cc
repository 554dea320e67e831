// SPDX-License-Identifier: Apache-2.0
// Log::Open alone, by size of the log, after a crash and after a clean close.
//
// Each turn opens a fresh copy of the image that a crash left, closes it, and
// opens it again.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/harness/region_file.h"
#include "bench/local/scenarios/log_image.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

constexpr uint64_t kOpeningSize = 1024;  // of the records

class Opener {
 public:
  explicit Opener(const Workload& workload)
      : workload_(workload), image_(RegionFilePath(workload, "opening")) {}

  // Makes the image.
  absl::Status Write() {
    ALPHEUS_ASSIGN_OR_RETURN(records_, WriteLogImage(workload_, image_.path()));
    return absl::OkStatus();
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
           .parameters = {{"bytes", kOpeningSize},
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
                                          .payload_bytes = kOpeningSize}));
    ALPHEUS_RETURN_IF_ERROR(all.back()->Write());
  }
  ALPHEUS_RETURN_IF_ERROR(Interleave(settings.rounds, all.size(),
                                     [&](size_t i) { return all[i]->Turn(); }));
  for (const auto& opener : all) opener->Report(&report->measurements);
  return absl::OkStatus();
}

}  // namespace alpheus::bench
