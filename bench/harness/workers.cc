// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/workers.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "bench/harness/clock.h"
#include "bench/harness/machine.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

struct Outcome {
  absl::Status status;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

uint64_t ThreadPreemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

}  // namespace

absl::StatusOr<int64_t> RunTogether(
    int threads, const std::vector<int>& cores,
    const std::function<absl::Status(int worker)>& work) {
  std::vector<Outcome> outcomes(threads);
  std::barrier<> start(threads);
  {
    std::vector<std::jthread> running;
    for (int worker = 0; worker < threads; ++worker) {
      running.emplace_back([&, worker] {
        Outcome& mine = outcomes[worker];
        if (!cores.empty()) mine.status = PinTo(CoreFor(cores, worker));
        start.arrive_and_wait();
        mine.start_ns = NowNanos();
        if (mine.status.ok()) mine.status = work(worker);
        mine.end_ns = NowNanos();
      });
    }
  }
  int64_t first = outcomes[0].start_ns;
  int64_t last = outcomes[0].end_ns;
  for (const Outcome& outcome : outcomes) {
    ALPHEUS_RETURN_IF_ERROR(outcome.status);
    first = std::min(first, outcome.start_ns);
    last = std::max(last, outcome.end_ns);
  }
  return last - first;
}

absl::StatusOr<RateSample> MeasureRate(Candidate& candidate, int threads,
                                       const std::vector<int>& cores,
                                       const Slice& slice) {
  const int64_t per_core = (threads - 1) / static_cast<int>(cores.size()) + 1;
  std::atomic<uint64_t> appended{0};
  std::atomic<uint64_t> preemptions{0};
  std::atomic<int64_t> common_end{0};
  const auto work = [&](int worker) -> absl::Status {
    // The one that runs first sets the end for all.
    int64_t end = 0;
    const int64_t mine = NowNanos() + slice.duration_ns * per_core;
    if (common_end.compare_exchange_strong(end, mine)) end = mine;
    const uint64_t preempted = ThreadPreemptions();
    uint64_t ops = 0;
    do {
      ALPHEUS_RETURN_IF_ERROR(candidate.Run(worker, slice.chunk_ops).status());
      ops += slice.chunk_ops;
    } while (NowNanos() < end);
    appended.fetch_add(ops, std::memory_order_relaxed);
    preemptions.fetch_add(ThreadPreemptions() - preempted,
                          std::memory_order_relaxed);
    return absl::OkStatus();
  };
  ALPHEUS_ASSIGN_OR_RETURN(const int64_t elapsed_ns,
                           RunTogether(threads, cores, work));
  return RateSample{static_cast<double>(appended.load()) * 1e9 /
                        static_cast<double>(elapsed_ns),
                    preemptions.load()};
}

}  // namespace alpheus::bench
