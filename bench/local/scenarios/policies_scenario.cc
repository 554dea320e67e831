// SPDX-License-Identifier: Apache-2.0
// Synchronous forces, frequencies 8 and 16 and groups of 128 and 256: the pairs
// that the paper calls comparable. Throughput is timed without sampling, the
// exposure is sampled in runs of its own.
#include <algorithm>
#include <array>
#include <atomic>
#include <optional>

#include "absl/strings/str_cat.h"
#include "bench/harness/perf_counter.h"
#include "bench/harness/workers.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "bench/local/candidates/contestants.h"
#include "bench/local/scenarios/exposure.h"
#include "bench/local/scenarios/rate_contest.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

constexpr const char* kScenario = "policies";
constexpr std::array<ForcePolicy, 5> kPolicies = {{{.frequency = 1},
                                                   {.frequency = 8},
                                                   {.frequency = 16},
                                                   {.group = 128},
                                                   {.group = 256}}};
constexpr uint64_t kPayloadBytes = 64;

Parameters ParametersOf(int threads) {
  return {{"bytes", kPayloadBytes},
          {"threads", static_cast<uint64_t>(threads)}};
}

absl::Status MeasureExposure(const Settings& settings, const Workload& workload,
                             Report* report) {
  for (const int threads : settings.policy_threads) {
    for (const ForcePolicy& policy : kPolicies) {
      ALPHEUS_ASSIGN_OR_RETURN(
          std::vector<uint64_t> counts,
          SampleExposure(workload,
                         {.policy = policy,
                          .threads = threads,
                          .ops_per_thread = settings.exposure_ops /
                                            static_cast<uint64_t>(threads)},
                         report->machine.cores));
      Parameters parameters = ParametersOf(threads);
      parameters["bound"] = ExposureBound(policy, threads);
      report->distributions.push_back({.scenario = kScenario,
                                       .candidate = CandidateName(policy),
                                       .metric = "exposure",
                                       .parameters = std::move(parameters),
                                       .counts = std::move(counts)});
    }
  }
  return absl::OkStatus();
}

// Misses per record of all threads together.
absl::StatusOr<double> CountMisses(CacheMiss kind, Candidate& candidate,
                                   int threads, uint64_t ops,
                                   const std::vector<int>& cores) {
  std::atomic<uint64_t> misses{0};
  const auto work = [&](int worker) -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(const PerfCounter counter,
                             PerfCounter::Start(kind));
    ALPHEUS_RETURN_IF_ERROR(candidate.Run(worker, ops).status());
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t counted, counter.Read());
    misses.fetch_add(counted, std::memory_order_relaxed);
    return absl::OkStatus();
  };
  ALPHEUS_RETURN_IF_ERROR(RunTogether(threads, cores, work).status());
  return static_cast<double>(misses.load()) /
         static_cast<double>(ops * static_cast<uint64_t>(threads));
}

absl::Status MeasureMisses(const Settings& settings, CacheMiss kind,
                           const Candidates& candidates, Report* report) {
  for (const int threads : settings.policy_threads) {
    const uint64_t ops = settings.exposure_ops / static_cast<uint64_t>(threads);
    for (const auto& candidate : candidates) {
      ALPHEUS_ASSIGN_OR_RETURN(
          const double misses,
          CountMisses(kind, *candidate, threads, ops, report->machine.cores));
      report->measurements.push_back({.scenario = kScenario,
                                      .candidate = candidate->name(),
                                      .metric = CacheMissName(kind),
                                      .unit = "misses/record",
                                      .parameters = ParametersOf(threads),
                                      .samples = {misses},
                                      .details = {}});
    }
  }
  return absl::OkStatus();
}

// Counters that the machine lacks are skipped in sight.
absl::Status MeasureMissesIfCounted(const Settings& settings,
                                    const Candidates& candidates,
                                    Report* report) {
  for (const CacheMiss kind : {CacheMiss::kL1dRead, CacheMiss::kLastLevel}) {
    const absl::Status counted = PerfCounter::Start(kind).status();
    if (counted.ok()) {
      ALPHEUS_RETURN_IF_ERROR(
          MeasureMisses(settings, kind, candidates, report));
    } else {
      report->skips.push_back({.scenario = kScenario,
                               .what = CacheMissName(kind),
                               .why = std::string(counted.message())});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePolicies(const Settings& settings, Report* report) {
  const Workload workload{
      .folder = settings.folder,
      .ring_bytes = settings.ring_bytes,
      .payload_bytes = kPayloadBytes,
      .workers = *std::max_element(settings.policy_threads.begin(),
                                   settings.policy_threads.end())};
  std::vector<MakeCandidate> makers;
  for (const ForcePolicy& policy : kPolicies) {
    makers.push_back(AlpheusWith(policy));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                           MakeAll(makers, workload));
  ALPHEUS_RETURN_IF_ERROR(
      WarmUp(candidates, 1, workload.ring_bytes / kPayloadBytes));
  ALPHEUS_RETURN_IF_ERROR(MeasureRates(settings, kScenario, candidates,
                                       settings.policy_threads, kPayloadBytes,
                                       report));
  ALPHEUS_RETURN_IF_ERROR(MeasureExposure(settings, workload, report));
  return MeasureMissesIfCounted(settings, candidates, report);
}

}  // namespace alpheus::bench
