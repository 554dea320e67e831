// SPDX-License-Identifier: Apache-2.0
#include "bench/local/rate_contest.h"

#include <utility>

#include "bench/local/interleave.h"
#include "bench/local/samples.h"
#include "bench/local/workers.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

// Some ten microseconds between two looks at the clock.
constexpr uint64_t kChunkOps = 100;

struct Contestant {
  Candidate* candidate = nullptr;
  int threads = 0;
  std::vector<double> rates;
};

std::vector<Contestant> Pair(const Candidates& candidates,
                             const std::vector<int>& threads) {
  std::vector<Contestant> contestants;
  for (const int count : threads) {
    for (const auto& candidate : candidates) {
      contestants.push_back({candidate.get(), count, {}});
    }
  }
  return contestants;
}

absl::Status Turn(const Settings& settings, const std::vector<int>& cores,
                  Contestant* contestant) {
  const Slice slice{.duration_ns = settings.slice_ns, .chunk_ops = kChunkOps};
  std::vector<double> rates;
  for (uint64_t i = 0; i < settings.slices; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const double rate,
        MeasureRate(*contestant->candidate, contestant->threads, cores, slice));
    rates.push_back(rate);
  }
  contestant->rates.push_back(Median(std::move(rates)));
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
         .details = {}});
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
