// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/nemesis_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {
namespace {

NemesisCluster Describe(const Cluster& cluster, bool has_links) {
  return {.node_count = cluster.node_count(),
          .write_quorum = cluster.write_quorum(),
          .spare_count = cluster.spare_count(),
          .has_links = has_links};
}

absl::Status LinkDevice(const NemesisOptions& options, const Cluster& cluster) {
  if (options.device.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_symlink(
      options.device,
      cluster.region(cluster.node_count(), ClusterRounds::LogName(1)), error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("a link to ", options.device, ": ", error.message()));
}

void AddRow(const char* name, const FaultTotals& totals, std::string* text) {
  absl::StrAppendFormat(
      text, "%-28s %7d %12d %12d %10d %8d %10.1f %8.1f\n", name, totals.rounds,
      totals.acknowledged, totals.recovered, totals.unacknowledged,
      totals.attempts,
      static_cast<double>(totals.recovery_nanos_sum) / 1e6 /
          static_cast<double>(std::max<uint64_t>(totals.rounds, 1)),
      static_cast<double>(totals.recovery_nanos_max) / 1e6);
}

}  // namespace

bool IsOver(const NemesisOptions& options, uint64_t rounds, int64_t nanos) {
  if (options.rounds_max != 0 && rounds >= options.rounds_max) return true;
  return options.nanos_max != 0 && nanos >= options.nanos_max;
}

void FaultTotals::Add(const ClusterRoundReport& report) {
  Add({.rounds = 1,
       .acknowledged = report.acknowledged_count,
       .recovered = report.recovered_count,
       .unacknowledged = report.unacknowledged_count,
       .attempts = report.attempts,
       .recovery_nanos_sum = report.recovery_nanos,
       .recovery_nanos_max = report.recovery_nanos});
}

void FaultTotals::Add(const FaultTotals& other) {
  rounds += other.rounds;
  acknowledged += other.acknowledged;
  recovered += other.recovered;
  unacknowledged += other.unacknowledged;
  attempts += other.attempts;
  recovery_nanos_sum += other.recovery_nanos_sum;
  recovery_nanos_max = std::max(recovery_nanos_max, other.recovery_nanos_max);
}

FaultTotals NemesisTotals::Sum() const {
  FaultTotals sum;
  for (const auto& [fault, totals] : by_fault) sum.Add(totals);
  return sum;
}

void NemesisTotals::Add(const ClusterRoundReport& report) {
  by_fault[report.plan.fault].Add(report);
  if (report.plan.cut != CutDirection::kNone) ++by_cut[report.plan.cut];
}

std::string NemesisTotals::Counts() const {
  std::vector<std::string> counts;
  for (const auto& [fault, totals] : by_fault) {
    counts.push_back(absl::StrCat(totals.rounds, " ", FaultName(fault)));
  }
  std::string text = absl::StrJoin(counts, ", ");
  const char* separator = "; links:";
  for (const auto& [cut, rounds] : by_cut) {
    absl::StrAppend(&text, separator, " ", rounds, CutName(cut));
    separator = ",";
  }
  return text;
}

std::string NemesisTotals::ToString() const {
  std::string text =
      absl::StrFormat("%-28s %7s %12s %12s %10s %8s %10s %8s\n", "fault",
                      "rounds", "acknowledged", "recovered", "unack'd",
                      "refused", "ms to open", "at most");
  for (const auto& [fault, totals] : by_fault) {
    AddRow(FaultName(fault), totals, &text);
  }
  AddRow("all", Sum(), &text);
  return text;
}

absl::Status RunNemesis(
    const NemesisOptions& options,
    const std::function<void(const ClusterRoundReport&)>& on_report,
    NemesisTotals* totals) {
  ClusterOptions cluster_options;
  cluster_options.alpheus = options.alpheus;
  cluster_options.alpheusd = options.alpheusd;
  cluster_options.directory = options.directory;
  cluster_options.node_count = options.node_count;
  cluster_options.rdma_hosts = options.rdma_hosts;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster,
                           Cluster::Create(cluster_options));
  ALPHEUS_RETURN_IF_ERROR(LinkDevice(options, *cluster));
  ALPHEUS_RETURN_IF_ERROR(cluster->StartAll());
  const Feed feed = Feed::FromText(options.feed_text);
  Random random(options.seed);
  ClusterRounds rounds(options.round, cluster.get(), &feed);
  const int64_t start = Clock::Real().NowNanos();
  for (uint64_t round = 1;; ++round) {
    const RoundPlan plan =
        DrawRound(Describe(*cluster, options.rdma_hosts.empty()), &random);
    auto report = rounds.RunRound(plan);
    if (!report.ok()) {
      return absl::Status(
          report.status().code(),
          absl::StrCat("round ", round, " of seed ", options.seed, " with ",
                       options.node_count, " nodes, ",
                       report.status().message()));
    }
    totals->Add(*report);
    on_report(*report);
    if (IsOver(options, round, Clock::Real().NowNanos() - start)) break;
  }
  for (int node = 1; node <= cluster->node_count(); ++node) {
    ALPHEUS_RETURN_IF_ERROR(cluster->Terminate(node));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::demo
