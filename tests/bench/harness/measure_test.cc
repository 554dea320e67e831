// SPDX-License-Identifier: Apache-2.0
// The machinery of the benchmarks: turns, threads, samples, JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/harness/core_use.h"
#include "bench/harness/interleave.h"
#include "bench/harness/machine.h"
#include "bench/harness/perf_counter.h"
#include "bench/harness/result.h"
#include "bench/harness/samples.h"
#include "bench/harness/workers.h"

namespace alpheus::bench {
namespace {

using ::testing::ElementsAre;

TEST(SamplesTest, MedianIsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({9, 1, 5, 7}), 6);
}

TEST(SamplesTest, MiddleMeanLeavesOutBothQuarters) {
  EXPECT_EQ(MiddleMean({4}), 4);
  EXPECT_EQ(MiddleMean({1000, 2, 4, 0}), 3);
}

TEST(CoreUseTest, IdleIsWhatTheKernelSaysOfAllCores) {
  const auto idle = IdleSeconds("cpu  7 8 9 1000 50 3 2 1 0 0", 100);
  ASSERT_TRUE(idle.ok()) << idle.status();
  EXPECT_EQ(*idle, 10.5);
  for (const char* text : {"", "cpu", "cpu 1 2 3 4", "cpu0 1 2 3 4 5"}) {
    EXPECT_EQ(IdleSeconds(text, 100).status().code(),
              absl::StatusCode::kUnavailable)
        << text;
  }
}

TEST(CoreUseTest, OthersHadWhatWasNeitherIdleNorOurs) {
  const CoreTimes before = {.passed = 100, .idle = 50, .own = 5};
  EXPECT_DOUBLE_EQ(
      ShareOfOthers(before, {.passed = 120, .idle = 60, .own = 10}), 0.25);
  // Ticks are coarse.
  EXPECT_EQ(ShareOfOthers(before, {.passed = 120, .idle = 60, .own = 16}), 0);
  EXPECT_EQ(ShareOfOthers(before, before), 0);
}

TEST(CoreUseTest, WhatThisProgramUsesIsItsOwn) {
  const auto before = ReadCoreTimes();
  ASSERT_TRUE(before.ok()) << before.status();
  TicksPerNano();  // keeps a core busy for 20 ms
  const auto after = ReadCoreTimes();
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_GT(after->own, before->own);
  EXPECT_GT(after->passed, before->passed);
  EXPECT_GE(after->idle, before->idle);
}

TEST(InterleaveTest, OrderRotatesFromRoundToRound) {
  std::vector<size_t> order;
  ASSERT_TRUE(Interleave(3, 3, [&](size_t i) {
                order.push_back(i);
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 1, 2, 0, 2, 0, 1));
}

TEST(InterleaveTest, FirstErrorEndsIt) {
  int turns = 0;
  const absl::Status status = Interleave(5, 2, [&](size_t i) {
    ++turns;
    return i == 1 ? absl::UnavailableError("gone") : absl::OkStatus();
  });
  EXPECT_EQ(status.message(), "gone");
  EXPECT_EQ(turns, 2);
}

TEST(WorkersTest, EachWorkerRunsOnceAndAnErrorIsReported) {
  const auto machine = DescribeMachine();
  ASSERT_TRUE(machine.ok()) << machine.status();
  std::atomic<uint64_t> seen{0};
  const auto elapsed = RunTogether(5, machine->cores, [&](int worker) {
    seen.fetch_add(uint64_t{1} << (8 * worker));
    return absl::OkStatus();
  });
  ASSERT_TRUE(elapsed.ok()) << elapsed.status();
  EXPECT_GE(*elapsed, 0);
  EXPECT_EQ(seen.load(), 0x0101010101u);
  const auto failed = RunTogether(3, machine->cores, [](int worker) {
    return worker == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  });
  EXPECT_EQ(failed.status().message(), "gone");
}

TEST(MachineTest, CoresAreTakenFromTheLastDown) {
  const std::vector<int> cores = {0, 2, 5};
  EXPECT_EQ(CoreFor(cores, 0), 5);
  EXPECT_EQ(CoreFor(cores, 2), 0);
  EXPECT_EQ(CoreFor(cores, 3), 5);
}

TEST(ResultTest, JsonHasEveryMeasurementAndSkip) {
  Report report;
  report.preset = "tiny";
  report.measurements.push_back({.scenario = "append",
                                 .candidate = "alpheus",
                                 .metric = "time",
                                 .unit = "ns",
                                 .parameters = {{"bytes", 64}},
                                 .samples = {3, 1, 2},
                                 .details = {{"fences", 1}}});
  report.distributions.push_back({.scenario = "policies",
                                  .candidate = "alpheus",
                                  .metric = "exposure",
                                  .parameters = {},
                                  .counts = {0, 7}});
  report.skips.push_back({.scenario = "policies", .what = "a", .why = "b"});
  const auto json = nlohmann::json::parse(ToJson(report), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["measurements"][0]["median"], 2);
  EXPECT_EQ(json["measurements"][0]["min"], 1);
  EXPECT_EQ(json["measurements"][0]["max"], 3);
  EXPECT_EQ(json["measurements"][0]["samples"].size(), 3u);
  EXPECT_EQ(json["measurements"][0]["parameters"]["bytes"], 64);
  EXPECT_EQ(json["distributions"][0]["counts"][1], 7);
  EXPECT_EQ(json["skips"][0]["why"], "b");
}

TEST(ResultTest, MeasurementsComeBackFromTheirJson) {
  Report report;
  report.measurements.push_back({.scenario = "order",
                                 .candidate = "parallel",
                                 .metric = "p50",
                                 .unit = "ns",
                                 .parameters = {{"clwb", 0}},
                                 .samples = {3, 1.5},
                                 .details = {{"sends", 1}}});
  const auto read = MeasurementsOf(ToJson(report));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].scenario, "order");
  EXPECT_EQ((*read)[0].candidate, "parallel");
  EXPECT_EQ((*read)[0].metric, "p50");
  EXPECT_EQ((*read)[0].unit, "ns");
  EXPECT_EQ((*read)[0].parameters, (Parameters{{"clwb", 0}}));
  EXPECT_THAT((*read)[0].samples, ElementsAre(3, 1.5));
  EXPECT_EQ((*read)[0].details.at("sends"), 1);
  for (const char* bad : {"", "{", "[]", "{}", R"({"measurements": 1})",
                          R"({"measurements": [{"scenario": "order"}]})"}) {
    EXPECT_TRUE(absl::IsDataLoss(MeasurementsOf(bad).status())) << bad;
  }
}

// Without the counter the reason must be told.
TEST(PerfCounterTest, CountsOrSaysWhyNot) {
  for (const CacheMiss kind : {CacheMiss::kL1dRead, CacheMiss::kLastLevel}) {
    const auto counter = PerfCounter::Start(kind);
    if (counter.ok()) {
      EXPECT_TRUE(counter->Read().ok());
    } else {
      EXPECT_THAT(std::string(counter.status().message()),
                  ::testing::HasSubstr(CacheMissName(kind)));
    }
  }
}

}  // namespace
}  // namespace alpheus::bench
