// SPDX-License-Identifier: Apache-2.0
// Forcing each 8th or 16th record beside forcing each, by size and number of
// threads: a policy that gives up durability must not cost time.
#include <algorithm>
#include <memory>

#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/candidates/contestants.h"
#include "bench/local/scenarios/rate_contest.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

absl::Status MeasureFrequencies(const Settings& settings, Report* report) {
  for (const uint64_t bytes : settings.sizes) {
    const Workload workload{
        .folder = settings.folder,
        .ring_bytes = settings.ring_bytes,
        .payload_bytes = bytes,
        .workers = *std::max_element(settings.threads.begin(),
                                     settings.threads.end())};
    // One log, so that all have the same pages (contestants.h).
    ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<Log> log,
                             MakeScratchLog(workload));
    std::vector<MakeCandidate> makers;
    for (const uint32_t frequency : {1u, 8u, 16u}) {
      makers.push_back(AlpheusOn(log, {.frequency = frequency}));
    }
    ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                             MakeAll(makers, workload));
    const uint64_t lap = workload.ring_bytes / bytes + 1;
    ALPHEUS_RETURN_IF_ERROR(
        WarmUp(candidates, workload.workers,
               lap / static_cast<uint64_t>(workload.workers)));
    ALPHEUS_RETURN_IF_ERROR(MeasureRates(settings, "frequencies", candidates,
                                         settings.threads, bytes, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
