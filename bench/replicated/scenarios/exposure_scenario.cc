// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/harness/force_policy.h"
#include "bench/harness/interleave.h"
#include "bench/local/scenarios/exposure.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr uint64_t kExposedPayloadBytes = 64;
constexpr std::array<ForcePolicy, 5> kExposedPolicies = {{{.frequency = 1},
                                                          {.frequency = 8},
                                                          {.frequency = 16},
                                                          {.group = 128},
                                                          {.group = 256}}};

void AddCounts(const std::vector<uint64_t>& from, std::vector<uint64_t>* sum) {
  sum->resize(std::max(sum->size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) (*sum)[i] += from[i];
}

// Of one policy.
struct Exposures {
  std::vector<uint64_t> counts;
  std::vector<double> rates;  // records per second, by rounds
};

absl::Status RunExposure(const Settings& settings, const ExposureRun& run,
                         const std::vector<int>& cores, Exposures* sum) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<AlpheusCluster> cluster,
      AlpheusCluster::Start({},
                            {.folder = settings.folder,
                             .ring_bytes = settings.ring_bytes,
                             .backups = 1},
                            Waiting::kBlock));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log, cluster->Open());
  const int64_t start = NowNanos();
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> counts,
      SampleExposure(*log, kExposedPayloadBytes, run, cores));
  const auto seconds = static_cast<double>(NowNanos() - start) / 1e9;
  AddCounts(counts, &sum->counts);
  sum->rates.push_back(static_cast<double>(run.ops_per_thread) * run.threads /
                       seconds);
  return log->Close();
}

void AddExposures(const ForcePolicy& policy, int threads,
                  const Exposures& exposures, Report* report) {
  const Parameters parameters = {{"threads", static_cast<uint64_t>(threads)},
                                 {"bytes", kExposedPayloadBytes},
                                 {"bound", ExposureBound(policy, threads)}};
  report->measurements.push_back({.scenario = "exposure",
                                  .candidate = CandidateName(policy),
                                  .metric = "rate",
                                  .unit = "records/s",
                                  .parameters = parameters,
                                  .samples = exposures.rates,
                                  .details = {}});
  report->distributions.push_back({.scenario = "exposure",
                                   .candidate = CandidateName(policy),
                                   .metric = "exposure",
                                   .parameters = parameters,
                                   .counts = exposures.counts});
}

}  // namespace

absl::Status MeasureExposure(const Settings& settings, Report* report) {
  for (const int threads : settings.exposure_threads) {
    const uint64_t ops = settings.exposure_ops / static_cast<uint64_t>(threads);
    std::array<Exposures, kExposedPolicies.size()> sums;
    ALPHEUS_RETURN_IF_ERROR(
        Interleave(settings.rounds, sums.size(), [&](size_t i) {
          return RunExposure(settings,
                             {.policy = kExposedPolicies[i],
                              .threads = threads,
                              .ops_per_thread = ops},
                             report->machine.cores, &sums[i]);
        }));
    for (size_t i = 0; i < sums.size(); ++i) {
      AddExposures(kExposedPolicies[i], threads, sums[i], report);
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
