// SPDX-License-Identifier: Apache-2.0
#include "bench/local/scenarios/exposure.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "bench/harness/workers.h"
#include "bench/local/candidates/alpheus_candidate.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

// The log's default cap on records that are not durable.
constexpr uint64_t kExposureMax = 4096;

class Sampler {
 public:
  Sampler(Log& log, const ForcePolicy& policy, uint64_t payload_bytes)
      : log_(log), policy_(policy), payload_(payload_bytes, std::byte{0x5a}) {}

  absl::Status Append(std::vector<uint64_t>* counts) {
    ALPHEUS_ASSIGN_OR_RETURN(Reservation record, ReserveWithRoom());
    ALPHEUS_RETURN_IF_ERROR(log_.Copy(record, 0, payload_));
    ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, log_.Complete(std::move(record)));
    ++(*counts)[std::min(Exposed(lsn), kExposureMax)];
    return log_.Force(lsn, OptionsOf(policy_));
  }

 private:
  absl::StatusOr<Reservation> ReserveWithRoom() {
    while (true) {
      absl::StatusOr<Reservation> record = log_.Reserve(payload_.size());
      if (!absl::IsResourceExhausted(record.status())) return record;
      ALPHEUS_RETURN_IF_ERROR(log_.CleanupThrough(log_.durable_lsn()));
    }
  }

  // Statistics of what others do at this moment: relaxed.
  uint64_t Exposed(Lsn completed) {
    uint64_t last = last_completed_.load(std::memory_order_relaxed);
    while (last < completed.value &&
           !last_completed_.compare_exchange_weak(last, completed.value,
                                                  std::memory_order_relaxed)) {
    }
    last = std::max(last, completed.value);
    return last - std::min(last, log_.durable_lsn().value);
  }

  Log& log_;
  const ForcePolicy policy_;
  const std::vector<std::byte> payload_;
  std::atomic<uint64_t> last_completed_{0};
};

void AddTo(const std::vector<uint64_t>& from, std::vector<uint64_t>* sum) {
  for (size_t i = 0; i < from.size(); ++i) (*sum)[i] += from[i];
}

void DropZerosAtEnd(std::vector<uint64_t>* counts) {
  while (counts->size() > 1 && counts->back() == 0) counts->pop_back();
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> SampleExposure(
    const Workload& workload, const ExposureRun& run,
    const std::vector<int>& cores) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                           MakeScratchLog(workload));
  return SampleExposure(*log, workload.payload_bytes, run, cores);
}

absl::StatusOr<std::vector<uint64_t>> SampleExposure(
    Log& log, uint64_t payload_bytes, const ExposureRun& run,
    const std::vector<int>& cores) {
  Sampler sampler(log, run.policy, payload_bytes);
  std::vector<std::vector<uint64_t>> counts(
      run.threads, std::vector<uint64_t>(kExposureMax + 1));
  const auto work = [&](int worker) -> absl::Status {
    for (uint64_t i = 0; i < run.ops_per_thread; ++i) {
      ALPHEUS_RETURN_IF_ERROR(sampler.Append(&counts[worker]));
    }
    return absl::OkStatus();
  };
  ALPHEUS_RETURN_IF_ERROR(RunTogether(run.threads, cores, work).status());
  for (int i = 1; i < run.threads; ++i) AddTo(counts[i], counts.data());
  DropZerosAtEnd(counts.data());
  return std::move(counts.front());
}

}  // namespace alpheus::bench
