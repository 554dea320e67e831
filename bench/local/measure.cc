// SPDX-License-Identifier: Apache-2.0
#include "bench/local/measure.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bench/local/alpheus_candidate.h"
#include "bench/local/floor.h"
#include "bench/local/pmemlog_candidate.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"

namespace alpheus::bench {
namespace {

using Candidates = std::vector<std::unique_ptr<Candidate>>;

// So that the median of a round has a choice where records are large.
constexpr uint64_t kBatchesMin = 15;

// Requires: not empty.
double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Floors first, then Alpheus, then the peer.
absl::StatusOr<Candidates> MakeCandidates(const Workload& workload) {
  ALPHEUS_ASSIGN_OR_RETURN(Candidates candidates, MakeFloors(workload));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Candidate> alpheus,
                           MakeAlpheusCandidate(workload));
  candidates.push_back(std::move(alpheus));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Candidate> pmemlog,
                           MakePmemlogCandidate(workload));
  candidates.push_back(std::move(pmemlog));
  return candidates;
}

void Add(const BatchResult& batch, Measurement* measurement) {
  measurement->reclaims += batch.reclaims;
  measurement->reclaimed_records += batch.reclaimed_records;
  measurement->reclaim_ns += batch.reclaim_ns;
  measurement->counters.fences += batch.counters.fences;
  measurement->counters.flushed_lines += batch.counters.flushed_lines;
  measurement->counters.nt_lines += batch.counters.nt_lines;
  measurement->counters.msyncs += batch.counters.msyncs;
}

absl::Status RunRound(Candidate& candidate, uint64_t batches, uint64_t ops,
                      Measurement* measurement) {
  std::vector<double> times;
  times.reserve(batches);
  for (uint64_t i = 0; i < batches; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(const BatchResult batch, candidate.Run(ops));
    times.push_back(static_cast<double>(batch.append_ns) /
                    static_cast<double>(ops));
    Add(batch, measurement);
    measurement->appends += ops;
  }
  measurement->batch_min_ns.push_back(
      *std::min_element(times.begin(), times.end()));
  measurement->append_ns.push_back(Median(std::move(times)));
  return absl::OkStatus();
}

absl::Status WarmUp(const Candidates& candidates, uint64_t ops) {
  for (const auto& candidate : candidates) {
    ALPHEUS_RETURN_IF_ERROR(candidate->Run(ops).status());
  }
  return absl::OkStatus();
}

}  // namespace

double Measurement::MedianAppendNs() const { return Median(append_ns); }

double Measurement::ReclaimNsPerRecord() const {
  if (reclaimed_records == 0) return 0;
  return static_cast<double>(reclaim_ns) /
         static_cast<double>(reclaimed_records);
}

const Measurement& Comparison::Floor() const {
  return *std::min_element(floors.begin(), floors.end(),
                           [](const Measurement& a, const Measurement& b) {
                             return a.MedianAppendNs() < b.MedianAppendNs();
                           });
}

absl::StatusOr<Comparison> Compare(const Workload& workload,
                                   const MeasureOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                           MakeCandidates(workload));
  // libpmemlog has no headers, so its lap is the one with most records.
  const uint64_t lap = workload.ring_bytes / workload.payload_bytes + 1;
  ALPHEUS_RETURN_IF_ERROR(WarmUp(candidates, lap));

  Comparison comparison;
  comparison.payload_bytes = workload.payload_bytes;
  comparison.batches =
      std::max(kBatchesMin, (lap + options.batch_ops - 1) / options.batch_ops);
  std::vector<Measurement> measurements(candidates.size());
  for (uint64_t round = 0; round < options.rounds; ++round) {
    for (size_t k = 0; k < candidates.size(); ++k) {
      const size_t i = (round + k) % candidates.size();
      measurements[i].name = candidates[i]->name();
      ALPHEUS_RETURN_IF_ERROR(RunRound(*candidates[i], comparison.batches,
                                       options.batch_ops, &measurements[i]));
    }
  }
  comparison.pmemlog = std::move(measurements.back());
  measurements.pop_back();
  comparison.alpheus = std::move(measurements.back());
  measurements.pop_back();
  comparison.floors = std::move(measurements);
  return comparison;
}

}  // namespace alpheus::bench
