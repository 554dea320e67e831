// SPDX-License-Identifier: Apache-2.0
// job_threads: threads for jobs that block for long: one for each, and a few at
// once.
//
// Idea: such jobs are rare, as an operator's orders are. A thread that has
// ended is joined when the next job begins.
//
// Invariants:
//   JBT1. At most jobs_max jobs run at once.
// Thread safety: Begin by many threads; the destructor by one, while nobody
// begins.
#ifndef ALPHEUS_API_WIRING_JOB_THREADS_H_
#define ALPHEUS_API_WIRING_JOB_THREADS_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "api/wiring/background_thread.h"
#include "log/base/mutex.h"

namespace alpheus {

class JobThreads {
 public:
  // `jobs_max`: how many jobs run at once; at least 1.
  explicit JobThreads(size_t jobs_max) : jobs_max_(jobs_max) {}
  // Waits until all jobs have ended.
  ~JobThreads() = default;
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  // Has the job run on a thread of its own. Does not wait for it. Errors, with
  // the job dropped: ResourceExhausted (jobs_max run; no thread).
  absl::Status Begin(std::function<void()> job);

 private:
  struct Job {
    std::function<void()> run;
    std::atomic<bool> has_ended{false};
    BackgroundThread thread;  // ends before the two above
  };

  const size_t jobs_max_;
  Mutex mutex_;
  std::list<Job> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_JOB_THREADS_H_
