// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/simulated_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/remotelog/rows.h"
#include "bench/remotelog/work_request.h"
#include "replication/persist/platform/method_steps.h"
#include "replication/persist/platform/method_table.h"

namespace alpheus::bench::remotelog {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;

AppendTimes Append(const replication::Platform& platform,
                   std::span<const replication::Step> steps,
                   const Costs& costs = {}, uint64_t clients = 1,
                   uint64_t appends = 1) {
  SimulatedTransport transport(costs);
  auto times = transport.Append({.platform = platform,
                                 .steps = steps,
                                 .clients = clients,
                                 .appends = appends});
  EXPECT_TRUE(times.ok()) << times.status();
  return times.ok() ? *std::move(times) : AppendTimes{};
}

double Latency(const BenchRow& row, const Costs& costs = {}) {
  const AppendTimes times = Append(row.platform, row.steps, costs);
  return times.latency.empty() ? -1 : times.latency.front();
}

BenchRow Row(const std::string& name) {
  for (BenchRow& row : BenchRows()) {
    if (row.name == name) return std::move(row);
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

double MoreWith(double Costs::* cost, double more, const std::string& row) {
  Costs costs;
  costs.*cost += more;
  return Latency(Row(row), costs) - Latency(Row(row));
}

// Goal: the parts add up. Method: the shortest row, by hand.
TEST(SimulatedTransportTest, CompletedWriteIsTheSumOfItsParts) {
  const Costs costs;
  const double way = costs.wire + costs.network_switch;
  EXPECT_DOUBLE_EQ(Latency(Row("wsp,on,dram,singleton,write")),
                   PostCost(replication::steps::kWriteA, costs) + costs.pcie +
                       LinkTime(kRecordBytes, costs) + way +
                       LinkTime(0, costs) + way + costs.pcie +
                       costs.root_complex + costs.poll);
}

TEST(SimulatedTransportTest, AcknowledgedMessageIsTheSumOfItsParts) {
  const Costs costs;
  const double way = costs.wire + costs.network_switch;
  const double into_memory = costs.pcie + costs.root_complex + costs.poll;
  EXPECT_DOUBLE_EQ(Latency(Row("mhp,on,dram,singleton,send")),
                   PostCost(replication::steps::kSendA, costs) + costs.pcie +
                       LinkTime(kRecordBytes, costs) + way + into_memory +
                       costs.handle + costs.load_cache + costs.load_memory +
                       PostCost(replication::steps::kSendAck, costs) +
                       costs.pcie + LinkTime(kNoticeBytes, costs) + way +
                       into_memory);
}

// Goal: as many fences as the row says are waited for.
TEST(SimulatedTransportTest, EachFenceOnTheWayIsPaidFor) {
  for (const auto& [row, fences] : std::vector<std::pair<std::string, int>>{
           {"dmp,on,dram,singleton,write", 1},
           {"dmp,on,dram,singleton,writeimm", 1},
           {"dmp,on,dram,singleton,send", 1},
           {"dmp,on,dram,compound,write", 2},
           {"dmp,on,dram,compound,writeimm", 2},
           {"dmp,on,dram,compound,send", 2},
           {"dmp,off,pm,compound,send", 0},
           {"mhp,on,dram,compound,send", 0},
           {"wsp,on,dram,compound,write", 0}}) {
    EXPECT_DOUBLE_EQ(MoreWith(&Costs::fence, 1000, row), 1000.0 * fences)
        << row;
  }
}

TEST(SimulatedTransportTest, EachRoundTripCrossesTheWireTwice) {
  for (const auto& [row, ways] : std::vector<std::pair<std::string, int>>{
           {"wsp,on,dram,compound,write", 2},
           {"dmp,off,dram,compound,write", 2},
           {"dmp,off,dram,compound,writeimm", 4},
           {"dmp,on,dram,compound,write", 4},
           {"dmp,on,dram,compound,send", 2}}) {
    EXPECT_DOUBLE_EQ(MoreWith(&Costs::wire, 1000, row), 1000.0 * ways) << row;
  }
}

// Goal: time comes from the steps. Method: leave out each step of each row; it
// takes less then, or waits for ever.
TEST(SimulatedTransportTest, StepThatIsLeftOutChangesTheTime) {
  SimulatedTransport transport{Costs()};
  for (const BenchRow& row : BenchRows()) {
    for (size_t i = 0; i < row.steps.size(); ++i) {
      std::vector<replication::Step> fewer = row.steps;
      fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(i));
      const absl::StatusOr<AppendTimes> times =
          transport.Append({.platform = row.platform, .steps = fewer});
      if (times.ok()) {
        EXPECT_LT(times->latency.front(), Latency(row))
            << row.name << " without " << replication::StepName(row.steps[i]);
      } else {
        EXPECT_EQ(times.status().code(), absl::StatusCode::kFailedPrecondition);
      }
    }
  }
}

TEST(SimulatedTransportTest, WaitForNothingIsAnError) {
  SimulatedTransport transport{Costs()};
  EXPECT_EQ(transport
                .Append({.platform = {},
                         .steps =
                             std::vector<replication::Step>{
                                 replication::steps::kReceiveAck}})
                .status()
                .code(),
            absl::StatusCode::kFailedPrecondition);
}

// Goal: a run is the same each time (EQ1), and one append as the next.
TEST(SimulatedTransportTest, SameRunTakesTheSameTime) {
  for (const BenchRow& row : BenchRows()) {
    const AppendTimes once = Append(row.platform, row.steps, {}, 3, 40);
    const AppendTimes again = Append(row.platform, row.steps, {}, 3, 40);
    EXPECT_EQ(once.latency, again.latency) << row.name;
    EXPECT_EQ(once.elapsed, again.elapsed) << row.name;
  }
}

// Goal: READ-WRITE-READ is the shorter one: its WRITE passes the first READ.
TEST(SimulatedTransportTest, EstimateIsShorterThanAtomicWrite) {
  const std::string name = "dmp,off,dram,compound,write";
  EXPECT_LT(Latency(Row(name + ",estimate")), Latency(Row(name)));
}

TEST(SimulatedTransportTest, BytesThatAreNotInlineAreFetched) {
  const Costs costs;
  Costs fetching;
  fetching.inline_bytes = 0;
  const BenchRow row = Row("wsp,on,dram,singleton,write");
  const double saved = PostCost(replication::steps::kWriteA, costs) -
                       PostCost(replication::steps::kWriteA, fetching);
  EXPECT_GT(saved, 0);
  EXPECT_NEAR(Latency(row, fetching) - Latency(row),
              2 * costs.pcie + costs.root_complex - saved, 1e-6);
}

// Goal: the server's thread does one thing at a time (RP1), an adapter many.
TEST(SimulatedTransportTest, ClientsWaitForTheServersThreadOnly) {
  const auto slowest = [](const std::string& name, uint64_t clients) {
    const BenchRow row = Row(name);
    const AppendTimes times = Append(row.platform, row.steps, {}, clients, 50);
    return *std::max_element(times.latency.begin(), times.latency.end());
  };
  EXPECT_GT(slowest("dmp,on,dram,singleton,send", 8),
            1.5 * slowest("dmp,on,dram,singleton,send", 1));
  EXPECT_LT(slowest("mhp,on,dram,singleton,write", 8),
            1.2 * slowest("mhp,on,dram,singleton,write", 1));
}

// Goal: RP2, applied records are trimmed, and that is work behind the ack.
TEST(SimulatedTransportTest, ServerAppliesAndTrimsBehindTheAck) {
  const Costs costs{.trim_records = 4};
  constexpr uint64_t kTrims = 7;
  const BenchRow row = Row("dmp,on,dram,singleton,send");
  // The last record is acknowledged, and not applied yet, when nobody waits any
  // more.
  const AppendTimes times =
      Append(row.platform, row.steps, costs, 1, 4 * kTrims + 1);
  EXPECT_NEAR(
      times.responder_background,
      4 * kTrims * (costs.apply + costs.post_receive) + kTrims * costs.trim,
      costs.apply + costs.post_receive);
  EXPECT_THAT(times.latency, Each(DoubleNear(times.latency.front(), 1e-6)));
}

TEST(SimulatedTransportTest, LongTrimDelaysTheAnswerBehindIt) {
  const BenchRow row = Row("dmp,on,dram,singleton,send");
  const Costs costs{.trim = 20'000, .trim_records = 4};
  const AppendTimes times = Append(row.platform, row.steps, costs, 1, 5);
  EXPECT_GT(times.latency[4], times.latency[3] + 15'000);
}

// Goal: a buffer that is the log is copied later; that takes the processor's
// time, and nobody's who waits.
TEST(SimulatedTransportTest, MessageInPmemIsAppliedInTheBackground) {
  const BenchRow send = Row("mhp,on,pm,singleton,send");
  const BenchRow write = Row("mhp,on,pm,singleton,write");
  const AppendTimes sent = Append(send.platform, send.steps, {}, 1, 20);
  const AppendTimes written = Append(write.platform, write.steps, {}, 1, 20);
  EXPECT_EQ(sent.responder_messages, 0);
  EXPECT_GT(sent.responder_background, written.responder_background);
  EXPECT_EQ(sent.latency, written.latency);
}

}  // namespace
}  // namespace alpheus::bench::remotelog
