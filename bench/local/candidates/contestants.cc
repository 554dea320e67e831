// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/contestants.h"

#include <utility>

#include "bench/harness/region_file.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/candidates/baseline_candidate.h"
#include "bench/local/candidates/flex_log.h"
#include "bench/local/candidates/floor.h"
#include "bench/local/candidates/pmemlog_candidate.h"
#include "bench/local/candidates/zero_log.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

namespace {

std::vector<MakeCandidate> Peers() {
  return {MakePmemlogCandidate, BaselineCandidate<FlexLog>::Make,
          BaselineCandidate<ZeroLog>::Make};
}

}  // namespace

std::vector<MakeCandidate> Logs() {
  std::vector<MakeCandidate> logs = {AlpheusWith({})};
  for (MakeCandidate& peer : Peers()) logs.push_back(std::move(peer));
  return logs;
}

absl::StatusOr<std::vector<MakeCandidate>> FloorsLogsAndFrequencies(
    const Workload& workload) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, MakeScratchRegion(workload, "floor"));
  ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<Log> log, MakeScratchLog(workload));
  std::vector<MakeCandidate> makers =
      FloorsIn(std::make_shared<const Region>(std::move(region)));
  makers.push_back(AlpheusOn(log, {}));
  for (MakeCandidate& maker : Peers()) makers.push_back(std::move(maker));
  makers.push_back(AlpheusOn(log, {.frequency = 8}));
  makers.push_back(AlpheusOn(log, {.frequency = 16}));
  return makers;
}

absl::StatusOr<Candidates> MakeAll(const std::vector<MakeCandidate>& makers,
                                   const Workload& workload) {
  Candidates candidates;
  for (const MakeCandidate& make : makers) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Candidate> candidate,
                             make(workload));
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

absl::Status WarmUp(const Candidates& candidates, int workers,
                    uint64_t ops_per_worker) {
  for (const auto& candidate : candidates) {
    for (int worker = 0; worker < workers; ++worker) {
      ALPHEUS_RETURN_IF_ERROR(candidate->Run(worker, ops_per_worker).status());
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
