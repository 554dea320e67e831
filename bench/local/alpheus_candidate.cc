// SPDX-License-Identifier: Apache-2.0
#include "bench/local/alpheus_candidate.h"

#include <string>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "bench/local/region_file.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"

namespace alpheus::bench {
namespace {

PersistenceCounters Difference(const PersistenceCounters& later,
                               const PersistenceCounters& earlier) {
  return {.fences = later.fences - earlier.fences,
          .flushed_lines = later.flushed_lines - earlier.flushed_lines,
          .nt_lines = later.nt_lines - earlier.nt_lines,
          .msyncs = later.msyncs - earlier.msyncs};
}

class AlpheusCandidate final : public Candidate {
 public:
  AlpheusCandidate(std::unique_ptr<Log> log, uint64_t payload_bytes)
      : log_(std::move(log)), payload_(payload_bytes, std::byte{0x5a}) {}

  std::string name() const override { return "alpheus"; }

  absl::StatusOr<BatchResult> Run(uint64_t ops) override {
    const PersistenceCounters before = ThreadPersistenceCounters();
    reclaim_counters_ = {};
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) {
      if (log_->Append(payload_).ok()) [[likely]]
        continue;
      ALPHEUS_RETURN_IF_ERROR(Reclaim(&result));
      ALPHEUS_RETURN_IF_ERROR(log_->Append(payload_).status());
    }
    result.append_ns = NowNanos() - start - result.reclaim_elapsed_ns;
    result.counters = Difference(
        Difference(ThreadPersistenceCounters(), before), reclaim_counters_);
    return result;
  }

 private:
  // An error other than "full" comes back with the second append.
  absl::Status Reclaim(BatchResult* result) {
    const PersistenceCounters before = ThreadPersistenceCounters();
    const int64_t start = NowNanos();
    const int64_t cpu_start = ThreadCpuNanos();
    const Lsn head = log_->head_lsn();
    ALPHEUS_RETURN_IF_ERROR(log_->CleanupThrough(log_->durable_lsn()));
    result->reclaimed_records += log_->head_lsn() - head;
    result->reclaim_ns += ThreadCpuNanos() - cpu_start;
    result->reclaim_elapsed_ns += NowNanos() - start;
    ++result->reclaims;
    reclaim_counters_ = Difference(ThreadPersistenceCounters(), before);
    return absl::OkStatus();
  }

  const std::unique_ptr<Log> log_;
  const std::vector<std::byte> payload_;
  PersistenceCounters reclaim_counters_;  // of the current batch
};

}  // namespace

absl::StatusOr<std::unique_ptr<Candidate>> MakeAlpheusCandidate(
    const Workload& workload) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const Layout layout,
      Layout::ForRing(workload.ring_bytes, kEpochTableCapacity));
  const std::string path = RegionFilePath(workload, "alpheus");
  ALPHEUS_RETURN_IF_ERROR(
      Log::Format({.path = path, .region_bytes = layout.region_bytes})
          .status());
  LogOptions options;
  options.path = path;
  absl::StatusOr<std::unique_ptr<Log>> log = Log::Open(options);
  RemoveRegionFile(path);
  if (!log.ok()) return log.status();
  return std::make_unique<AlpheusCandidate>(*std::move(log),
                                            workload.payload_bytes);
}

}  // namespace alpheus::bench
