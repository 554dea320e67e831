// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "bench/harness/result.h"
#include "bench/remotelog/costs.h"
#include "bench/remotelog/scenarios.h"
#include "bench/remotelog/simulated_transport.h"

namespace alpheus::bench::remotelog {
namespace {

bool HasAtomic(const BenchRow& row) {
  return std::any_of(
      row.steps.begin(), row.steps.end(), [](const replication::Step& step) {
        return step.action == replication::StepAction::kRequesterWriteAtomic;
      });
}

TEST(BenchRowsTest, AllRowsOfTheTablesAndAnEstimateForEachAtomicWrite) {
  std::set<std::string> names;
  int estimates = 0;
  int atomics = 0;
  for (const BenchRow& row : BenchRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    atomics += HasAtomic(row) ? 1 : 0;
    if (row.name.ends_with(",estimate")) {
      ++estimates;
      EXPECT_FALSE(HasAtomic(row)) << row.name;
    }
  }
  EXPECT_EQ(names.size(), 72u + 2u);
  EXPECT_EQ(estimates, 2);
  EXPECT_EQ(atomics, 2);
  EXPECT_TRUE(names.contains("mhp,on,dram,singleton,write"));
}

TEST(ConstantsTest, EachHasItsSource) {
  for (const Constant& constant : Constants()) {
    EXPECT_NE(std::string_view(constant.what), "") << constant.name;
    EXPECT_NE(std::string_view(constant.source), "") << constant.name;
    EXPECT_GT(Costs().*constant.value, 0) << constant.name;
  }
}

// Goal: no constant is idle. Method: a tenth of it; something else must come
// out somewhere, if only of the server's processor.
TEST(ConstantsTest, EachIsPaidSomewhere) {
  for (const Constant& constant : Constants()) {
    Costs costs;
    costs.*constant.value /= 10;
    SimulatedTransport usual{Costs()};
    SimulatedTransport other(costs);
    bool differs = false;
    for (const BenchRow& row : BenchRows()) {
      const AppendRun run{.platform = row.platform,
                          .steps = row.steps,
                          .clients = 2,
                          .appends = 20};
      const auto before = usual.Append(run);
      const auto after = other.Append(run);
      ASSERT_TRUE(before.ok() && after.ok());
      differs = differs || before->latency != after->latency ||
                before->responder_background != after->responder_background;
    }
    EXPECT_TRUE(differs) << constant.name;
  }
}

TEST(ScenariosTest, EachRowIsMeasuredByEachCost) {
  Settings settings = TinySettings();
  Report report;
  ASSERT_TRUE(MeasureSensitivity(settings, &report).ok());
  EXPECT_EQ(report.measurements.size(),
            kVariations.size() * Constants().size() + settings.draws +
                settings.wide_draws);
  for (const Measurement& measurement : report.measurements) {
    EXPECT_EQ(measurement.details.size(), BenchRows().size());
  }
}

}  // namespace
}  // namespace alpheus::bench::remotelog
