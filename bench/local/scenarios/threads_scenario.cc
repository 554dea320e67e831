// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bench/local/candidates/contestants.h"
#include "bench/local/scenarios/rate_contest.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

absl::Status MeasureThreads(const Settings& settings, Report* report) {
  for (const uint64_t bytes : settings.thread_sizes) {
    const Workload workload{
        .folder = settings.folder,
        .ring_bytes = settings.ring_bytes,
        .payload_bytes = bytes,
        .workers = *std::max_element(settings.threads.begin(),
                                     settings.threads.end())};
    ALPHEUS_ASSIGN_OR_RETURN(const std::vector<MakeCandidate> makers,
                             FloorsLogsAndFrequencies(workload));
    ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                             MakeAll(makers, workload));
    const uint64_t lap = workload.ring_bytes / bytes + 1;
    ALPHEUS_RETURN_IF_ERROR(
        WarmUp(candidates, workload.workers,
               lap / static_cast<uint64_t>(workload.workers)));
    ALPHEUS_RETURN_IF_ERROR(MeasureRates(settings, "threads", candidates,
                                         settings.threads, bytes, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
