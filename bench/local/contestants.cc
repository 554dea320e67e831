// SPDX-License-Identifier: Apache-2.0
#include "bench/local/contestants.h"

#include <utility>

#include "bench/local/alpheus_candidate.h"
#include "bench/local/baseline_candidate.h"
#include "bench/local/flex_log.h"
#include "bench/local/floor.h"
#include "bench/local/pmemlog_candidate.h"
#include "bench/local/zero_log.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

std::vector<MakeCandidate> Logs() {
  return {AlpheusWith({}), MakePmemlogCandidate,
          BaselineCandidate<FlexLog>::Make, BaselineCandidate<ZeroLog>::Make};
}

std::vector<MakeCandidate> FloorsLogsAndFrequencies() {
  std::vector<MakeCandidate> makers = Floors();
  for (MakeCandidate& maker : Logs()) makers.push_back(std::move(maker));
  makers.push_back(AlpheusWith({.frequency = 8}));
  makers.push_back(AlpheusWith({.frequency = 16}));
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
