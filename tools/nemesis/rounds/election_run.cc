// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/election_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/processes/millis.h"
#include "tools/nemesis/processes/zookeeper_servers.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {
namespace {

// More than a load takes of a ring (election_round.cc), and the part of a
// region that one of two primaries may fill.
constexpr uint64_t kLoadBytesPerSecond = 800'000;
constexpr uint64_t kLoadShare = 4;

// With a load, the ring has room for all of it.
ElectionRoundOptions RoundOptionsOf(const ElectionRunOptions& options) {
  ElectionRoundOptions round = options.round;
  if (options.kind != ElectionKind::kStopped) return round;
  round.is_patient = true;
  const uint64_t bytes =
      static_cast<uint64_t>(options.stop_nanos / 2 / kNanosPerSecond + 1) *
      kLoadBytesPerSecond * kLoadShare;
  while (round.region_bytes < bytes) round.region_bytes *= 2;
  return round;
}

absl::Status StartServers(ZookeeperServers* servers) {
  ALPHEUS_RETURN_IF_ERROR(servers->StartAll());
  if (servers->AwaitAll()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("ZooKeeper does not answer: ", servers->Said()));
}

absl::Status CheckHasZookeeper() {
  std::string missing = ZookeeperServers::WhyMissing();
  if (!quorum::HasZookeeperClient()) {
    missing = "built without libzookeeper-st-dev";
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("there can be no ZooKeeper here: ", missing));
}

ClusterOptions ClusterOptionsOf(const ElectionRunOptions& options,
                                const ZookeeperServers* servers) {
  ClusterOptions cluster;
  cluster.alpheus = options.run.alpheus;
  cluster.alpheusd = options.run.alpheusd;
  cluster.directory = options.run.directory;
  cluster.node_count = options.run.node_count;
  if (servers == nullptr) return cluster;
  for (const quorum::Address& address : servers->addresses()) {
    cluster.zookeeper.push_back(address.ToString());
  }
  return cluster;
}

template <class Fault>
std::string CountsOf(const std::map<Fault, uint64_t>& rounds,
                     const char* (*name)(Fault)) {
  return absl::StrJoin(rounds, ", ", [name](std::string* out, const auto& one) {
    absl::StrAppend(out, one.second, " ", name(one.first));
  });
}

}  // namespace

void ElectionTotals::Add(const ElectionReport& report) {
  ++rounds;
  acknowledged += report.acknowledged_count;
  epochs += report.epoch_count;
  fail_over_nanos_max = std::max(fail_over_nanos_max, report.fail_over_nanos);
  ++by_fault[report.plan.fault];
  ++by_service[report.plan.service];
}

std::string ElectionTotals::ToString() const {
  std::string text = absl::StrCat(
      rounds, " rounds of elections, ", epochs, " epochs, ", acknowledged,
      " records acknowledged, longest fail-over ", Millis(fail_over_nanos_max),
      " ms; ", CountsOf(by_fault, ElectionFaultName));
  if (by_service.size() > 1) {
    absl::StrAppend(&text, "; ", CountsOf(by_service, ServiceFaultName));
  }
  return text;
}

absl::Status RunElections(
    const ElectionRunOptions& options,
    const std::function<void(const ElectionReport&)>& on_report,
    ElectionTotals* totals) {
  const NemesisOptions& run = options.run;
  std::optional<ZookeeperServers> servers;
  if (options.kind == ElectionKind::kStopped && options.zookeeper_count == 0) {
    return absl::InvalidArgumentError(
        "there is no ZooKeeper that could stand still; take 1 server or more");
  }
  if (options.zookeeper_count > 0) {
    ALPHEUS_RETURN_IF_ERROR(CheckHasZookeeper());
    servers.emplace(options.zookeeper_count, run.directory);
    ALPHEUS_RETURN_IF_ERROR(StartServers(&*servers));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster,
                           Cluster::Create(ClusterOptionsOf(
                               options, servers ? &*servers : nullptr)));
  ALPHEUS_RETURN_IF_ERROR(cluster->StartAll());
  const Feed feed = Feed::FromText(run.feed_text);
  Random random(run.seed);
  ElectionRounds rounds(RoundOptionsOf(options), cluster.get(),
                        servers ? &*servers : nullptr, &feed);
  const auto in_round = [&](const absl::Status& status) {
    return absl::Status(
        status.code(),
        absl::StrCat("round ", totals->rounds + 1, " of seed ", run.seed,
                     " with ", run.node_count, " nodes, ", status.message()));
  };
  const int64_t start = Clock::Real().NowNanos();
  do {
    ElectionPlan plan = DrawElection(options.kind, run.node_count,
                                     servers.has_value(), &random);
    if (options.kind == ElectionKind::kStopped) {
      plan.load_nanos = options.stop_nanos / 2;
    }
    const auto report = rounds.RunRound(plan);
    if (!report.ok()) return in_round(report.status());
    totals->Add(*report);
    on_report(*report);
  } while (!IsOver(run, totals->rounds, Clock::Real().NowNanos() - start));
  if (const absl::Status last = rounds.Finish(); !last.ok()) {
    return in_round(last);
  }
  for (int node = 1; node <= cluster->node_count(); ++node) {
    ALPHEUS_RETURN_IF_ERROR(cluster->Terminate(node));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::demo
