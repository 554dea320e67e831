// SPDX-License-Identifier: Apache-2.0
// Latency of one thread. A round gives each candidate one lap of its ring (at
// least), in batches; its sample is the median of the batches. An uncounted lap
// before maps all pages and warms all alike.
#include <algorithm>
#include <utility>
#include <vector>

#include "bench/harness/interleave.h"
#include "bench/harness/samples.h"
#include "bench/local/candidates/contestants.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

// Large records need several samples in a round for a median.
constexpr uint64_t kBatchesMin = 15;

struct Contestant {
  std::vector<double> append_ns;  // median batch, append_ns[rounds]
  BatchResult sum;
  uint64_t appends = 0;
};

void Add(const BatchResult& batch, BatchResult* sum) {
  sum->reclaims += batch.reclaims;
  sum->reclaimed_records += batch.reclaimed_records;
  sum->reclaim_ns += batch.reclaim_ns;
  sum->counters.fences += batch.counters.fences;
  sum->counters.flushed_lines += batch.counters.flushed_lines;
}

double Ratio(double a, uint64_t b) {
  return b == 0 ? 0 : a / static_cast<double>(b);
}

absl::Status RunRound(Candidate& candidate, uint64_t batches, uint64_t ops,
                      Contestant* contestant) {
  std::vector<double> times;
  times.reserve(batches);
  for (uint64_t i = 0; i < batches; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(const BatchResult batch, candidate.Run(0, ops));
    times.push_back(Ratio(static_cast<double>(batch.append_ns), ops));
    Add(batch, &contestant->sum);
    contestant->appends += ops;
  }
  contestant->append_ns.push_back(Median(std::move(times)));
  return absl::OkStatus();
}

// A record's share of the next cleaning is part of its cost.
Measurement ToMeasurement(const Candidate& candidate, uint64_t bytes,
                          const Contestant& c) {
  const BatchResult& sum = c.sum;
  const double reclaim_ns =
      Ratio(static_cast<double>(sum.reclaim_ns), sum.reclaimed_records);
  Measurement m{.scenario = "append",
                .candidate = candidate.name(),
                .metric = "time per record",
                .unit = "ns",
                .parameters = {{"bytes", bytes}, {"threads", 1}},
                .samples = {},
                .details = {}};
  for (const double ns : c.append_ns) m.samples.push_back(ns + reclaim_ns);
  const auto per_append = [&](uint64_t count) {
    return Ratio(static_cast<double>(count), c.appends);
  };
  m.details = {{"reclaim_ns", reclaim_ns},
               {"reclaims", static_cast<double>(sum.reclaims)},
               {"fences", per_append(sum.counters.fences)},
               {"flushed_lines", per_append(sum.counters.flushed_lines)}};
  return m;
}

absl::Status MeasureSize(const Settings& settings,
                         const std::vector<MakeCandidate>& makers,
                         const Workload& workload, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                           MakeAll(makers, workload));
  const uint64_t bytes = workload.payload_bytes;
  // libpmemlog has no headers, so its lap is the one with most records.
  const uint64_t lap = workload.ring_bytes / bytes + 1;
  ALPHEUS_RETURN_IF_ERROR(WarmUp(candidates, 1, lap));
  const uint64_t batches = std::max(kBatchesMin, lap / settings.batch_ops + 1);
  std::vector<Contestant> contestants(candidates.size());
  ALPHEUS_RETURN_IF_ERROR(
      Interleave(settings.rounds, candidates.size(), [&](size_t i) {
        return RunRound(*candidates[i], batches, settings.batch_ops,
                        &contestants[i]);
      }));
  for (size_t i = 0; i < candidates.size(); ++i) {
    report->measurements.push_back(
        ToMeasurement(*candidates[i], bytes, contestants[i]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureAppend(const Settings& settings, Report* report) {
  Workload workload{.folder = settings.folder,
                    .ring_bytes = settings.ring_bytes};
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<MakeCandidate> makers,
                           FloorsLogsAndFrequencies(workload));
  for (const uint64_t bytes : settings.sizes) {
    workload.payload_bytes = bytes;
    ALPHEUS_RETURN_IF_ERROR(MeasureSize(settings, makers, workload, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench
