// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/collect/node_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "alpheus/log.h"
#include "api/grpc/calls/call_counts.h"
#include "api/metrics/model/catalogue.h"
#include "api/service/log/service_log.h"
#include "log/base/bytes.h"

namespace alpheus::metrics {
namespace {

using service::Finding;
using ::testing::Each;
using ::testing::IsEmpty;

class NodeCollectorTest : public ::testing::Test {
 protected:
  ~NodeCollectorTest() override {
    if (log_ != nullptr) Close();
  }

  // As a node that is elected.
  void Open(bool is_served = true) {
    auto log = Log::Open({.anonymous_bytes = 1 << 20, .idle_force_us = 0});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    held_.Take("main", *log_);
    if (!is_served) return;
    const absl::Status serves = served_.Serve("main", *log_);
    ASSERT_TRUE(serves.ok()) << serves;
  }
  void Close() {
    served_.Withdraw("main");
    held_.GiveBack("main");
    log_.reset();
  }

  // Appends as a new client, with this sequence. Tells its finding, as a call
  // does.
  Finding AppendAs(uint64_t sequence, std::string_view text) {
    const service::LogUse use = served_.Use("main");
    const service::Verdict opened = use->service().Open(use->service().epoch());
    const std::span<const std::byte> payload = AsBytes(text);
    const service::AppendRequest request = {.client = {*opened.place},
                                            .number = {sequence, sequence},
                                            .payloads = {&payload, 1}};
    std::vector<service::Verdict> verdicts;
    use->service().Append(use->service().epoch(), {&request, 1}, &verdicts);
    use->Settle(verdicts, PersistedBy::kQuorum, [](const absl::Status&) {});
    return verdicts.front().finding;
  }

  std::vector<Family> Collect() const {
    return NodeCollector({.node = 7,
                          .start_time_s = 1'234,
                          .held = &held_,
                          .served = &served_,
                          .calls = &calls_,
                          .connections = [this] { return connections_; },
                          .observe = [this] { return status_; }})
        .Collect();
  }
  // Returns the value of the one sample with these labels; none: there is none.
  std::optional<double> Value(const Metric& metric,
                              const Labels& labels = {{"log", "main"}}) const {
    for (const Family& family : Collect()) {
      if (family.metric.name != metric.name) continue;
      for (const Sample& sample : family.samples) {
        if (sample.labels == labels) return sample.value;
      }
    }
    return std::nullopt;
  }

  mutable service::ServedLogs served_{{"main", "other"}};
  HeldLogs held_{{"main", "other"}};
  rpc::CallCounts calls_;
  rpc::ConnectionCounts connections_;
  std::optional<NodeStatus> status_ = NodeStatus();
  std::unique_ptr<Log> log_;
};

TEST_F(NodeCollectorTest, LogIsShownWhileItIsOpen) {
  EXPECT_EQ(Value(kLogPrimary), 0);
  EXPECT_EQ(Value(kLogServed), 0);
  EXPECT_EQ(Value(kLogNext), std::nullopt);
  Open();
  ASSERT_TRUE(log_->Append("one").ok());
  ASSERT_TRUE(log_->Append("two").ok());
  auto reserved = log_->Reserve(3);
  ASSERT_TRUE(reserved.ok());
  EXPECT_EQ(Value(kLogPrimary), 1);
  EXPECT_EQ(Value(kLogServed), 1);
  EXPECT_EQ(Value(kLogOpenings), 1);
  EXPECT_EQ(Value(kLogHead), 1);
  EXPECT_EQ(Value(kLogDurable), 2);
  EXPECT_EQ(Value(kLogPersisted), 2);
  EXPECT_EQ(Value(kLogInSyncLsn), 2);
  EXPECT_EQ(Value(kLogNext), 4);
  EXPECT_EQ(Value(kLogExposed), 1);
  EXPECT_EQ(Value(kLogExposedMax), static_cast<double>(log_->ExposedMax()));
  EXPECT_EQ(Value(kLogRingBytes), static_cast<double>(log_->ring_bytes()));
  EXPECT_GT(Value(kLogRingUsed).value_or(0), 0);
  EXPECT_LT(Value(kLogRingUsed).value_or(0), *Value(kLogRingBytes));
  ASSERT_TRUE(log_->Complete(*std::move(reserved)).ok());
  Close();
  EXPECT_EQ(Value(kLogPrimary), 0);
  EXPECT_EQ(Value(kLogNext), std::nullopt);
  EXPECT_EQ(Value(kLogOpenings), 1) << "openings are those of the process";
  Open();
  EXPECT_EQ(Value(kLogOpenings), 2);
}

// A node that stands without --serve, or with a log that is not the service's.
TEST_F(NodeCollectorTest, LogThatIsNotServedIsShown) {
  Open(/*is_served=*/false);
  EXPECT_EQ(Value(kLogPrimary), 1);
  EXPECT_EQ(Value(kLogServed), 0);
  EXPECT_EQ(Value(kLogNext), 1);
  EXPECT_EQ(Value(kOpenClients), std::nullopt);
}

TEST_F(NodeCollectorTest, ServiceCountsWhatItAppendsAndTells) {
  Open();
  EXPECT_EQ(AppendAs(1, "12345"), Finding::kAppended);
  EXPECT_EQ(AppendAs(1, "678"), Finding::kAppended);
  EXPECT_EQ(AppendAs(0, "never"), Finding::kImpossible);
  EXPECT_EQ(Value(kAppendedRecords), 2);
  EXPECT_EQ(Value(kAppendedBytes), 8);
  EXPECT_EQ(Value(kRefusals, {{"log", "main"}, {"reason", "impossible"}}), 1);
  EXPECT_EQ(Value(kRefusals, {{"log", "main"}, {"reason", "no_room"}}), 0);
  EXPECT_EQ(Value(kOpenClients), 3);
  EXPECT_EQ(Value(kKnownClients), 3);
  EXPECT_EQ(Value(kStreams), 0);
  Close();
  EXPECT_EQ(Value(kAppendedRecords), 2) << "counts outlive the opening";
  EXPECT_EQ(Value(kOpenClients), std::nullopt);
}

TEST_F(NodeCollectorTest, CallsAreShownByMethodAndCode) {
  constexpr int kUnavailable = 14;
  calls_.NoteCall(rpc::Method::kAppend, 0, calls_.NowNanos());
  calls_.NoteCall(rpc::Method::kAppend, kUnavailable, calls_.NowNanos());
  calls_.NoteCall(rpc::Method::kAppend, 12'345, calls_.NowNanos());
  calls_.NoteStreamBegun(rpc::Method::kTail);
  calls_.NoteStreamBegun(rpc::Method::kTail);
  calls_.NoteStreamEnded(rpc::Method::kTail, kUnavailable);
  const auto calls = [&](const char* method, const char* code) {
    return Value(kCalls, {{"method", method}, {"code", code}});
  };
  EXPECT_EQ(calls("Append", "OK"), 1);
  EXPECT_EQ(calls("Append", "UNAVAILABLE"), 1);
  EXPECT_EQ(calls("Append", "UNKNOWN"), 1);
  EXPECT_EQ(calls("Append", "INTERNAL"), std::nullopt);
  EXPECT_EQ(calls("Tail", "OK"), 0);
  EXPECT_EQ(calls("Tail", "UNAVAILABLE"), 1);
  EXPECT_EQ(Value(kOpenStreams, {{"method", "Tail"}}), 1);
  EXPECT_EQ(Value(kOpenStreams, {{"method", "Append"}}), std::nullopt);
}

TEST_F(NodeCollectorTest, ConnectionsOfClientsAreShown) {
  connections_ = {.open = 3, .refused = 5};
  EXPECT_EQ(Value(kClientConnections, {}), 3);
  EXPECT_EQ(Value(kRefusedClientConnections, {}), 5);
}

TEST_F(NodeCollectorTest, ReplicasAreShownAsTheNodeTells) {
  NodeStatus status;
  NodeStatus::Replica replica{.log = "main", .is_served = true};
  replica.followed.in_session = true;
  replica.followed.persisted_lsn = Lsn(41);
  replica.scrubbed.total.damaged = 3;
  replica.scrubbed.unrepairable.resize(2);
  status.replicas = {replica, {.log = "other"}};
  status.connections = 5;
  status.rejected[0] = 4;
  status.certificate_end_s = 1'800'000'000;
  status_ = status;
  EXPECT_EQ(Value(kNodeResponsive, {}), 1);
  EXPECT_EQ(Value(kNodeConnections, {}), 5);
  EXPECT_EQ(Value(kNodeCertificateEnd, {}), 1'800'000'000);
  EXPECT_EQ(Value(kReplicaServed), 1);
  EXPECT_EQ(Value(kReplicaInSession), 1);
  EXPECT_EQ(Value(kReplicaPersisted), 41);
  EXPECT_EQ(Value(kReplicaDamaged), 3);
  EXPECT_EQ(Value(kReplicaUnrepairable), 2);
  EXPECT_EQ(Value(kReplicaServed, {{"log", "other"}}), 0);
  EXPECT_EQ(Value(kReplicaPersisted, {{"log", "other"}}), std::nullopt);
  status_ = std::nullopt;
  EXPECT_EQ(Value(kNodeResponsive, {}), 0);
  EXPECT_EQ(Value(kReplicaServed), std::nullopt);
}

// Values of labels come of closed sets, and no series is there twice.
TEST_F(NodeCollectorTest, SeriesAreUnique) {
  Open();
  for (const Family& family : Collect()) {
    std::vector<Labels> seen;
    for (const Sample& sample : family.samples) {
      EXPECT_THAT(seen, Each(::testing::Ne(sample.labels)))
          << family.metric.name;
      seen.push_back(sample.labels);
    }
  }
}

// HLG1, SVD1: the log that is given back and freed is not looked at any more.
// The sanitizers see it if it is.
TEST_F(NodeCollectorTest, LogMayGoDuringAScrape) {
  std::atomic<bool> is_over{false};
  std::atomic<int> scrapes{0};
  std::thread scraper([&] {
    while (!is_over) {
      (void)Collect();
      ++scrapes;
    }
  });
  for (int round = 0; round < 50; ++round) {
    Open();
    // At least one scrape begins while it is open.
    const int before = scrapes;
    while (scrapes == before) std::this_thread::yield();
    Close();
  }
  is_over = true;
  scraper.join();
}

// The same without chance: the holder waits for a visit.
TEST(HeldLogsTest, GiveBackWaitsForAVisit) {
  auto log = Log::Open({.anonymous_bytes = 1 << 20, .idle_force_us = 0});
  ASSERT_TRUE(log.ok()) << log.status();
  HeldLogs held({"main"});
  held.Take("main", **log);
  std::atomic<bool> is_given_back{false};
  std::thread holder;
  held.ForEach([&](const HeldLogs::Held& visited) {
    ASSERT_EQ(visited.log, log->get());
    holder = std::thread([&] {
      held.GiveBack("main");
      is_given_back = true;
    });
    // Whatever it does meanwhile, it is not done.
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
    EXPECT_FALSE(is_given_back);
  });
  holder.join();
  held.ForEach(
      [&](const HeldLogs::Held& visited) { EXPECT_EQ(visited.log, nullptr); });
}

}  // namespace
}  // namespace alpheus::metrics
