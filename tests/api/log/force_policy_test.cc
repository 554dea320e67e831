// SPDX-License-Identifier: Apache-2.0
// Force policies and waiting through the public interface, with threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "alpheus/log.h"

namespace alpheus {
namespace {

constexpr uint32_t kNever = 0;

std::unique_ptr<Log> OpenScratch(uint32_t idle_force_us,
                                 uint32_t exposure_records_max = 64) {
  LogOptions options;
  options.anonymous_bytes = 1 << 20;
  options.idle_force_us = idle_force_us;
  options.exposure_records_max = exposure_records_max;
  absl::StatusOr<std::unique_ptr<Log>> log = Log::Open(options);
  EXPECT_TRUE(log.ok()) << log.status();
  return *std::move(log);
}

// Appends until told; cleans what is durable when the ring is full.
absl::Status AppendMany(Log& log, int records, const ForceOptions& force) {
  for (int i = 0; i < records; ++i) {
    for (;;) {
      const absl::StatusOr<Lsn> lsn = log.Append("some record", force);
      if (lsn.ok()) break;
      if (!absl::IsResourceExhausted(lsn.status())) return lsn.status();
      const absl::Status cleaned = log.CleanupThrough(log.durable_lsn());
      if (!cleaned.ok()) return cleaned;
    }
  }
  return absl::OkStatus();
}

void RunThreads(int threads, const std::function<void()>& run) {
  std::vector<std::jthread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(run);
}

// Nobody forces, and WaitDurable does not either: the log itself does.
TEST(IdleForceTest, CompletedRecordBecomesDurableByItself) {
  const std::unique_ptr<Log> log = OpenScratch(/*idle_force_us=*/1000);
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<Lsn> lsn = log->Append("unforced", {.frequency = 32});
    ASSERT_TRUE(lsn.ok());
    EXPECT_TRUE(log->WaitDurable(*lsn).ok());
    EXPECT_EQ(log->Exposed(), 0u);
  }
}

TEST(IdleForceTest, WithoutItARecordStaysExposed) {
  const std::unique_ptr<Log> log = OpenScratch(kNever);
  const absl::StatusOr<Lsn> lsn = log->Append("unforced", {.frequency = 32});
  ASSERT_TRUE(lsn.ok());
  const Deadline soon = Deadline::In(std::chrono::milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(log->WaitDurable(*lsn, soon)));
  EXPECT_EQ(log->Exposed(), 1u);
  EXPECT_EQ(log->ExposedMax(), 64u);
}

TEST(IdleForceTest, RefusedCloseLetsTheLogGoOn) {
  const std::unique_ptr<Log> log = OpenScratch(/*idle_force_us=*/1000);
  absl::StatusOr<Reservation> open = log->Reserve(8);
  ASSERT_TRUE(open.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(log->Close()));
  const absl::StatusOr<Lsn> lsn = log->Complete(*std::move(open));
  ASSERT_TRUE(lsn.ok());
  EXPECT_TRUE(log->WaitDurable(*lsn).ok());
  EXPECT_TRUE(log->Close().ok());
}

TEST(OnDurableTest, EachThreadIsToldOnceOfEachRecord) {
  constexpr int kThreads = 4;
  constexpr int kRecords = 2000;
  const std::unique_ptr<Log> log = OpenScratch(/*idle_force_us=*/1000);
  std::vector<std::atomic<int>> told(kThreads * kRecords + 1);
  std::atomic<uint64_t> last{0};
  std::atomic<int> failures{0};
  RunThreads(kThreads, [&] {
    for (int i = 0; i < kRecords; ++i) {
      absl::StatusOr<Lsn> lsn = log->Append("record", {.frequency = 8});
      if (absl::IsResourceExhausted(lsn.status())) {
        (void)log->CleanupThrough(log->durable_lsn());
        --i;
        continue;
      }
      if (!lsn.ok() ||
          !log->OnDurable(*lsn,
                          [&, l = lsn->value](const absl::Status& s) {
                            if (!s.ok() || log->durable_lsn().value < l)
                              ++failures;
                            ++told[l];
                            last = l;
                          })
               .ok()) {
        ++failures;
      }
    }
  });
  ASSERT_TRUE(log->Force(log->next_lsn() - 1).ok());
  ASSERT_TRUE(log->Close().ok());
  EXPECT_EQ(failures, 0);
  for (size_t lsn = 1; lsn < told.size(); ++lsn) EXPECT_EQ(told[lsn], 1) << lsn;
}

class PolicyStressTest : public ::testing::TestWithParam<ForceOptions> {};

TEST_P(PolicyStressTest, ExposureStaysBelowTheCapAndEverythingEndsDurable) {
  const std::unique_ptr<Log> log = OpenScratch(kNever);
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    while (!done) EXPECT_LE(log->Exposed(), log->ExposedMax());
  });
  RunThreads(8, [&] { EXPECT_TRUE(AppendMany(*log, 3000, GetParam()).ok()); });
  done = true;
  watcher.join();
  EXPECT_EQ(log->next_lsn(), Lsn(8 * 3000 + 1));
  EXPECT_TRUE(log->Force(log->next_lsn() - 1).ok());
  EXPECT_EQ(log->durable_lsn(), Lsn(8 * 3000));
}

// Spinning must not keep the one core from the thread that is waited for.
TEST_P(PolicyStressTest, ManyThreadsOnOneCoreComeToAnEnd) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const std::unique_ptr<Log> log = OpenScratch(/*idle_force_us=*/1000);
  RunThreads(16, [&] {
    EXPECT_TRUE(AppendMany(*log, 200, GetParam()).ok());
    EXPECT_TRUE(log->WaitDurable(log->next_lsn() - 1).ok());
  });
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(log->Exposed(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    AllPolicies, PolicyStressTest,
    ::testing::Values(ForceOptions{}, ForceOptions{.frequency = 8},
                      ForceOptions{.frequency = 16}, ForceOptions{.group = 16}),
    [](const ::testing::TestParamInfo<ForceOptions>& info) {
      return info.param.group != 0
                 ? "Group" + std::to_string(info.param.group)
                 : "Frequency" + std::to_string(info.param.frequency);
    });

}  // namespace
}  // namespace alpheus
