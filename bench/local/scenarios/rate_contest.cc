// SPDX-License-Identifier: Apache-2.0
#include "bench/local/scenarios/rate_contest.h"

#include <algorithm>
#include <utility>

#include "bench/harness/interleave.h"
#include "bench/harness/samples.h"
#include "bench/harness/workers.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

// Some ten microseconds between two looks at the clock.
constexpr uint64_t kChunkOps = 100;

struct Contestant {
  Candidate* candidate = nullptr;
  int threads = 0;
  std::vector<double> rates = {};
  uint64_t slices = 0;
  uint64_t preemptions = 0;  // in all of them
};

std::vector<Contestant> Pair(const Candidates& candidates,
                             const std::vector<int>& threads) {
  std::vector<Contestant> contestants;
  for (const int count : threads) {
    for (const auto& candidate : candidates) {
      contestants.push_back({.candidate = candidate.get(), .threads = count});
    }
  }
  return contestants;
}

// The median of the slices that were preempted least: what others do on the
// machine is not the candidate's.
double LeastDisturbed(const std::vector<RateSample>& slices) {
  uint64_t least = slices.front().preemptions;
  for (const RateSample& slice : slices) {
    least = std::min(least, slice.preemptions);
  }
  std::vector<double> rates;
  for (const RateSample& slice : slices) {
    if (slice.preemptions == least) rates.push_back(slice.records_per_second);
  }
  return Median(std::move(rates));
}

absl::Status Turn(const Settings& settings, const std::vector<int>& cores,
                  Contestant* contestant) {
  const Slice slice{.duration_ns = settings.slice_ns, .chunk_ops = kChunkOps};
  // Slices of many threads are longer (workers.h): fewer will do.
  const uint64_t longer =
      (static_cast<uint64_t>(contestant->threads) - 1) / cores.size() + 1;
  const uint64_t count = std::max<uint64_t>(1, settings.slices / longer);
  std::vector<RateSample> slices;
  for (uint64_t i = 0; i < count; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const RateSample sample,
        MeasureRate(*contestant->candidate, contestant->threads, cores, slice));
    slices.push_back(sample);
    contestant->preemptions += sample.preemptions;
  }
  contestant->slices += count;
  contestant->rates.push_back(LeastDisturbed(slices));
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRates(const Settings& settings, const std::string& scenario,
                          const Candidates& candidates,
                          const std::vector<int>& threads, uint64_t bytes,
                          Report* report) {
  std::vector<Contestant> contestants = Pair(candidates, threads);
  const auto turn = [&](size_t i) {
    return Turn(settings, report->machine.cores, &contestants[i]);
  };
  ALPHEUS_RETURN_IF_ERROR(
      Interleave(settings.rounds, contestants.size(), turn));
  for (Contestant& contestant : contestants) {
    report->measurements.push_back(
        {.scenario = scenario,
         .candidate = contestant.candidate->name(),
         .metric = "throughput",
         .unit = "records/s",
         .parameters = {{"bytes", bytes},
                        {"threads", static_cast<uint64_t>(contestant.threads)}},
         .samples = std::move(contestant.rates),
         .details = {{"preemptions_per_slice",
                      static_cast<double>(contestant.preemptions) /
                          static_cast<double>(contestant.slices)}}});
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
