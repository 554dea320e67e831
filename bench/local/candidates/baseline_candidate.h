// SPDX-License-Identifier: Apache-2.0
// baseline_candidate: a log of the benchmarks' own (flex_log.h, zero_log.h)
// behind a mutex, as candidate.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_BASELINE_CANDIDATE_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_BASELINE_CANDIDATE_H_

#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "bench/harness/candidate.h"
#include "bench/harness/clock.h"
#include "bench/harness/reclaim_timer.h"
#include "bench/harness/region_file.h"
#include "bench/harness/source.h"
#include "log/base/mutex.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

template <class LogType>
class BaselineCandidate final : public Candidate {
 public:
  static absl::StatusOr<std::unique_ptr<Candidate>> Make(
      const Workload& workload) {
    ALPHEUS_ASSIGN_OR_RETURN(Region region,
                             MakeScratchRegion(workload, LogType::kName));
    return std::make_unique<BaselineCandidate>(std::move(region),
                                               workload.payload_bytes);
  }

  BaselineCandidate(Region region, uint64_t payload_bytes)
      : region_(std::move(region)),
        payload_(SourceBytes(payload_bytes)),
        log_(region_.bytes()) {}

  std::string name() const override { return LogType::kName; }

  absl::StatusOr<BatchResult> Run(int /*worker*/, uint64_t ops) override {
    BatchResult result;
    const int64_t start = NowNanos();
    for (uint64_t i = 0; i < ops; ++i) Append(&result);
    result.append_ns = NowNanos() - start - result.reclaim_elapsed_ns;
    return result;
  }

 private:
  void Append(BatchResult* result) {
    const MutexLock lock(mutex_);
    if (log_.Append(payload_)) [[likely]]
      return;
    {
      const ReclaimTimer timer(result);
      result->reclaimed_records += log_.records();
      log_.Clear();
    }
    log_.Append(payload_);
  }

  const Region region_;
  const std::span<const std::byte> payload_;
  Mutex mutex_;
  LogType log_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_BASELINE_CANDIDATE_H_
