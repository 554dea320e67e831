// SPDX-License-Identifier: Apache-2.0
// Is every run told of, whatever becomes of its process?
#include "tools/sim/run/seed_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <map>
#include <utility>

#include "log/base/check.h"
#include "tools/sim/run/totals.h"

namespace alpheus::sim {
namespace {

using ::testing::HasSubstr;

// Seeds, named after what their runs do.
enum : uint64_t {
  kGood = 1,
  kViolating,
  kFailingACheck,
  kSignalled,
  kExiting,
  kSpinning,
  kBabbling
};

RunResult Simulate(const RunOptions& options) {
  RunResult result;
  result.acknowledged = options.seed * 10;
  result.counters.calls = 5;
  result.counters.faults[2] = 3;
  switch (options.seed) {
    case kViolating:
      result.violation = {"P-C4", "it is gone", 42};
      break;
    case kFailingACheck:
      ALPHEUS_CHECK(options.seed == 0, "SR1");
      break;
    case kSignalled:
      raise(SIGKILL);
      break;
    case kExiting:
      std::fprintf(stderr, "farewell\n");
      _exit(9);
    case kSpinning:
      for (std::atomic<uint64_t> turns = 0;;) ++turns;
    case kBabbling:
      for (int i = 0; i < 100'000; ++i) std::fprintf(stderr, "bla %d\n", i);
      std::abort();
    default:
      break;
  }
  return result;
}

// The limit is ten times as long in real time, so only a run that is to reach
// it has a short one.
SeedRunner MakeRunner(int jobs, int cpu_seconds_max = 600) {
  return {{.jobs = jobs,
           .cpu_seconds_max = cpu_seconds_max,
           .simulation = Simulate},
          Clock::Real()};
}

RunOptions OfSeed(uint64_t seed) {
  RunOptions options;
  options.seed = seed;
  return options;
}

RunResult RunOne(uint64_t seed, int cpu_seconds_max = 600) {
  SeedRunner runner = MakeRunner(1, cpu_seconds_max);
  const absl::StatusOr<SeedOutcome> outcome = runner.Run(OfSeed(seed));
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  return outcome.ok() ? outcome->result : RunResult();
}

std::string InvariantOf(const RunResult& result) {
  return result.violation ? result.violation->invariant : "";
}

TEST(SeedRunnerTest, WhatAGoodRunSaysArrives) {
  const RunResult result = RunOne(kGood);
  EXPECT_FALSE(result.violation);
  EXPECT_EQ(result.acknowledged, 10u);
  EXPECT_EQ(result.counters.calls, 5u);
  EXPECT_EQ(result.counters.faults[2], 3u);
}

TEST(SeedRunnerTest, AViolationArrives) {
  const RunResult result = RunOne(kViolating);
  ASSERT_TRUE(result.violation);
  EXPECT_EQ(result.violation->invariant, "P-C4");
  EXPECT_EQ(result.violation->what, "it is gone");
  EXPECT_EQ(result.violation->at_ns, 42);
  EXPECT_EQ(result.acknowledged, 20u);
}

TEST(SeedRunnerTest, AFailedCheckIsAViolationWithItsText) {
  const RunResult result = RunOne(kFailingACheck);
  EXPECT_EQ(InvariantOf(result), kCheckFailed);
  EXPECT_THAT(result.violation->what, HasSubstr("SR1"));
  EXPECT_THAT(result.violation->what, HasSubstr("seed_runner_test.cc"));
}

TEST(SeedRunnerTest, ASignalAndAnExitAreCrashes) {
  EXPECT_EQ(InvariantOf(RunOne(kSignalled)), kCrashed);
  const RunResult exited = RunOne(kExiting);
  EXPECT_EQ(InvariantOf(exited), kCrashed);
  EXPECT_THAT(exited.violation->what, HasSubstr("exit status 9"));
  EXPECT_THAT(exited.violation->what, HasSubstr("farewell"));
}

TEST(SeedRunnerTest, OfALongDeathTheEndIsTold) {
  const RunResult result = RunOne(kBabbling);
  EXPECT_EQ(InvariantOf(result), kCrashed);
  EXPECT_THAT(result.violation->what, HasSubstr("bla 99999"));
  EXPECT_LT(result.violation->what.size(), 20'000u);
}

// Takes the second that it has.
TEST(SeedRunnerTest, ARunThatDoesNotEndIsHung) {
  EXPECT_EQ(InvariantOf(RunOne(kSpinning, /*cpu_seconds_max=*/1)), kHung);
}

TEST(SeedRunnerTest, EachRunIsToldOfOnce) {
  for (const int jobs : {1, 3, 40}) {
    SeedRunner runner = MakeRunner(jobs);
    uint64_t seed = 0;
    std::map<uint64_t, int> told;
    Totals totals;
    EXPECT_TRUE(
        runner
            .RunAll(
                [&]() -> std::optional<RunOptions> {
                  if (seed == 30) return std::nullopt;
                  ++seed;
                  return OfSeed(seed == kSpinning ? 100 : seed);
                },
                [&](const RunOptions& options, const SeedOutcome& outcome) {
                  ++told[options.seed];
                  totals.Add(outcome);
                  return true;
                })
            .ok());
    EXPECT_EQ(told.size(), 30u);
    for (const auto& [of, times] : told) EXPECT_EQ(times, 1) << of;
    EXPECT_EQ(totals.seeds, 30u);
    EXPECT_EQ(totals.violated, 5u);
    // Nothing is known of the four that died.
    EXPECT_EQ(totals.counters.calls, 26u * 5);
    EXPECT_EQ(totals.faults(), 26u * 3);
  }
}

TEST(SeedRunnerTest, NoMoreIsStartedAfterAFalse) {
  SeedRunner runner = MakeRunner(2);
  int started = 0;
  int told = 0;
  EXPECT_TRUE(runner
                  .RunAll([&] { return ++started, OfSeed(kGood); },
                          [&](const RunOptions&, const SeedOutcome&) {
                            return ++told < 10;
                          })
                  .ok());
  EXPECT_EQ(told, started);
  EXPECT_LE(told, 11);
}

TEST(SeedRunnerTest, AResultThatIsCutOffIsNone) {
  RunResult result;
  result.violation = {"P-C1", "gone", 1};
  const std::string text = EncodeResult(result);
  ASSERT_TRUE(DecodeResult(text));
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(DecodeResult(text.substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(DecodeResult(text + "x"));
}

TEST(SeedRunnerTest, WithoutProcessesOrPipesItSaysSo) {
#if defined(ALPHEUS_SANITIZED)
  GTEST_SKIP() << "skipped: a sanitizer needs descriptors of its own";
#endif
  SeedRunner runner = MakeRunner(1);
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none = {3, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::StatusOr<SeedOutcome> outcome = runner.Run(OfSeed(kGood));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr("pipe"));
}

TEST(TotalsTest, TheTextHasEachClass) {
  Totals totals;
  SeedOutcome outcome;
  outcome.result.counters.faults[0] = 12345;
  outcome.cpu_ns = 500'000'000;
  totals.Add(outcome);
  const std::string text = Describe(totals);
  EXPECT_THAT(text, HasSubstr("12345"));
  EXPECT_THAT(text, HasSubstr("2.0/s per core"));
  for (size_t i = 0; i < kFaultKinds; ++i) {
    EXPECT_THAT(text, HasSubstr(FaultName(static_cast<FaultKind>(i))));
  }
}

}  // namespace
}  // namespace alpheus::sim
