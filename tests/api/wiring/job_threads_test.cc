// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/job_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus {
namespace {

using testing::InPatience;

// Tries until a job that has ended has left its place.
absl::Status BeginSoon(JobThreads& jobs, const std::function<void()>& job) {
  const Deadline end = InPatience();
  for (;;) {
    absl::Status begun = jobs.Begin(job);
    if (!absl::IsResourceExhausted(begun)) return begun;
    if (end.HasPassed(Clock::Real().NowNanos())) return begun;
  }
}

TEST(JobThreadsTest, JobsRunAtOnceAndOneTooManyIsRefused) {
  std::latch has_begun(2);
  std::latch may_end(1);
  std::atomic<int> ended = 0;
  {
    JobThreads jobs(2);
    const auto job = [&] {
      has_begun.count_down();
      may_end.wait();
      ++ended;
    };
    ASSERT_TRUE(jobs.Begin(job).ok());
    ASSERT_TRUE(jobs.Begin(job).ok());
    has_begun.wait();
    EXPECT_TRUE(absl::IsResourceExhausted(jobs.Begin([&] { ended = 100; })));
    may_end.count_down();
    const absl::Status begun = BeginSoon(jobs, [&] { ++ended; });
    EXPECT_TRUE(begun.ok()) << begun;
  }
  // The destructor has waited.
  EXPECT_EQ(ended, 3);
}

TEST(JobThreadsTest, JobIsForgottenWhenItHasEnded) {
  const auto owned = std::make_shared<int>(0);
  JobThreads jobs(1);
  ASSERT_TRUE(jobs.Begin([owned] { ++*owned; }).ok());
  const absl::Status begun = BeginSoon(jobs, [] {});
  ASSERT_TRUE(begun.ok()) << begun;
  EXPECT_EQ(owned.use_count(), 1);
  EXPECT_EQ(*owned, 1);
}

}  // namespace
}  // namespace alpheus
