// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/alpheus_candidate.h"

#include <span>
#include <utility>

#include "bench/harness/clock.h"
#include "bench/harness/reclaim_timer.h"
#include "bench/harness/region_file.h"
#include "bench/harness/source.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"

namespace alpheus::bench {
namespace {

PersistenceCounters Difference(const PersistenceCounters& later,
                               const PersistenceCounters& earlier) {
  return {.fences = later.fences - earlier.fences,
          .flushed_lines = later.flushed_lines - earlier.flushed_lines,
          .msyncs = later.msyncs - earlier.msyncs};
}

void Add(const PersistenceCounters& more, PersistenceCounters* sum) {
  sum->fences += more.fences;
  sum->flushed_lines += more.flushed_lines;
  sum->msyncs += more.msyncs;
}

class AlpheusCandidate final : public Candidate {
 public:
  AlpheusCandidate(std::shared_ptr<Log> log, const ForcePolicy& policy,
                   uint64_t payload_bytes)
      : log_(std::move(log)),
        policy_(policy),
        payload_(SourceBytes(payload_bytes)) {}

  std::string name() const override { return CandidateName(policy_); }

  absl::StatusOr<BatchResult> Run(int /*worker*/, uint64_t ops) override {
    const ForceOptions force = OptionsOf(policy_);
    return Loop(ops, [&] { return log_->Append(payload_, force).status(); });
  }

 private:
  template <class Step>
  absl::StatusOr<BatchResult> Loop(uint64_t ops, Step append) {
    const PersistenceCounters before = ThreadPersistenceCounters();
    PersistenceCounters of_reclaims;
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) {
      absl::Status appended = append();
      // Another worker may fill what this one has cleaned.
      while (!appended.ok()) [[unlikely]] {
        if (!absl::IsResourceExhausted(appended)) return appended;
        ALPHEUS_RETURN_IF_ERROR(Reclaim(&result, &of_reclaims));
        appended = append();
      }
    }
    result.append_ns = NowNanos() - start - result.reclaim_elapsed_ns;
    result.counters = Difference(
        Difference(ThreadPersistenceCounters(), before), of_reclaims);
    return result;
  }

  absl::Status Reclaim(BatchResult* result, PersistenceCounters* counters) {
    const PersistenceCounters before = ThreadPersistenceCounters();
    const ReclaimTimer timer(result);
    const Lsn head = log_->head_lsn();
    ALPHEUS_RETURN_IF_ERROR(log_->CleanupThrough(log_->durable_lsn()));
    result->reclaimed_records += log_->head_lsn() - head;
    Add(Difference(ThreadPersistenceCounters(), before), counters);
    return absl::OkStatus();
  }

  const std::shared_ptr<Log> log_;
  const ForcePolicy policy_;
  const std::span<const std::byte> payload_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Log>> MakeLog(const std::string& path,
                                             const Workload& workload) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const Layout layout,
      Layout::ForRing(workload.ring_bytes, kEpochTableCapacity));
  ALPHEUS_RETURN_IF_ERROR(
      Log::Format({.path = path, .region_bytes = layout.region_bytes})
          .status());
  LogOptions options;
  options.path = path;
  // Records are exposed as long as the policy leaves them so.
  options.idle_force_us = 0;
  return Log::Open(options);
}

absl::StatusOr<std::unique_ptr<Log>> MakeScratchLog(const Workload& workload) {
  const ScratchFile file(RegionFilePath(workload, "alpheus"));
  return MakeLog(file.path(), workload);
}

MakeCandidate AlpheusWith(const ForcePolicy& policy) {
  return [policy](const Workload& workload)
             -> absl::StatusOr<std::unique_ptr<Candidate>> {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> log,
                             MakeScratchLog(workload));
    return std::make_unique<AlpheusCandidate>(std::move(log), policy,
                                              workload.payload_bytes);
  };
}

MakeCandidate AlpheusOn(const std::shared_ptr<Log>& log,
                        const ForcePolicy& policy) {
  return [log, policy](const Workload& workload)
             -> absl::StatusOr<std::unique_ptr<Candidate>> {
    return std::make_unique<AlpheusCandidate>(log, policy,
                                              workload.payload_bytes);
  };
}

}  // namespace alpheus::bench
