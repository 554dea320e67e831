// SPDX-License-Identifier: Apache-2.0
// contest: candidates take turns at the same work; what each record took is
// reduced to quantiles, one sample of each per round.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_SCENARIOS_CONTEST_H_
#define ALPHEUS_BENCH_REPLICATED_SCENARIOS_CONTEST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/result.h"
#include "bench/replicated/candidates/candidate.h"

namespace alpheus::bench::replicated {

struct Contest {
  std::string scenario;
  Parameters parameters;  // of the report, beside "bytes" and "spin"
  uint64_t bytes = 0;     // of a payload
  Waiting waiting = Waiting::kSpin;
  uint64_t warm_up_ops = 0;  // of a turn; not timed
  uint64_t ops = 0;          // of a turn; timed, each for itself
};

struct Contestant {
  std::string name;
  MakeCandidate make;
};

using Candidates = std::vector<std::unique_ptr<Candidate>>;

// One of each. One that is not there (NotFound) becomes a skip of `scenario`.
absl::StatusOr<Candidates> MakeCandidates(
    const std::vector<Contestant>& contestants, const Work& work,
    const std::string& scenario, Report* report);

// Adds p50, p99, p99.9 and mean of an Append, in ns, of each candidate.
absl::Status RunContest(uint64_t rounds, const Candidates& candidates,
                        const Contest& contest, Report* report);

// Both in one.
absl::Status MeasureOne(uint64_t rounds,
                        const std::vector<Contestant>& contestants,
                        const Work& work, const Contest& contest,
                        Report* report);

// p50, p99, p99.9 and mean. Requires: not empty.
std::map<std::string, double> Summarize(std::vector<double> times);

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_SCENARIOS_CONTEST_H_
