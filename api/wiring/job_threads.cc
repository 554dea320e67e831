// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/job_threads.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus {

absl::Status JobThreads::Begin(std::function<void()> job) {
  const MutexLock lock(mutex_);
  // Joins: a thread that has said so ends at once.
  jobs_.remove_if([](const Job& before) {
    return before.has_ended.load(std::memory_order_acquire);
  });
  if (jobs_.size() >= jobs_max_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(jobs_.size(),
                     " calls of this kind run already. Nothing was begun; try "
                     "again when one of them has ended"));
  }
  Job& begun = jobs_.emplace_back();
  begun.run = std::move(job);
  absl::Status started = begun.thread.Start([&begun] {
    begun.run();
    // The job's own things go with it, not with the next one.
    begun.run = {};
    begun.has_ended.store(true, std::memory_order_release);
  });
  if (!started.ok()) jobs_.pop_back();
  return started;
}

}  // namespace alpheus
