// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/cluster_demo.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/membership/zookeeper/zookeeper_client.h"
#include "tools/nemesis/oracles/log_output.h"
#include "tools/nemesis/oracles/recovery_oracle.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/processes/millis.h"
#include "tools/nemesis/processes/patience.h"
#include "tools/nemesis/processes/standing_programs.h"
#include "tools/nemesis/processes/work_directory.h"
#include "tools/nemesis/processes/zookeeper_servers.h"
#include "tools/nemesis/writers/cluster_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {
namespace {

constexpr char kLog[] = "main";
constexpr uint64_t kAcksMax = 20'000;
// Largest delay of the kill after the drawn acknowledgement.
constexpr uint64_t kDelayNanosMax = 1'000'000;
constexpr uint64_t kUnacknowledgedMax = 2'000;
// Part of the ring that each of the four programs may fill.
constexpr uint64_t kProgramShare = 6;
constexpr uint64_t kNumbersPerWriter = 1 << 24;

class Demo {
 public:
  Demo(const ClusterDemoOptions& options, const Feed* feed, Cluster* cluster)
      : options_(options),
        feed_(*feed),
        cluster_(*cluster),
        random_(options.seed),
        programs_(cluster, feed, [](const ClusterWriter& ended) {
          return absl::DataLossError(absl::StrCat(
              ended.ToString(), " ended by itself with ",
              ended.end()->ToString(), "; it said: ", ended.said()));
        }) {}

  absl::Status Run() {
    ALPHEUS_RETURN_IF_ERROR(Begin());
    ALPHEUS_RETURN_IF_ERROR(StandAndElect());
    ALPHEUS_RETURN_IF_ERROR(DieAndElect());
    ALPHEUS_RETURN_IF_ERROR(ComeBack());
    ALPHEUS_RETURN_IF_ERROR(DrainAndElect());
    ALPHEUS_RETURN_IF_ERROR(End());
    ALPHEUS_RETURN_IF_ERROR(OpenOnAll());
    return ProveReplicas();
  }

 private:
  absl::Status Begin() {
    ALPHEUS_RETURN_IF_ERROR(cluster_.StartAll());
    for (int node = 1; node <= cluster_.node_count(); ++node) {
      absl::PrintF("node %d      alpheusd listens on %s\n", node,
                   cluster_.address(node));
    }
    ALPHEUS_RETURN_IF_ERROR(
        cluster_
            .MustSucceed("format", {"--log", kLog, "--size",
                                    absl::StrCat(options_.region_bytes)})
            .status());
    absl::PrintF(
        "log         '%s', %d bytes on each node; durable is what %d of %d "
        "nodes have\n",
        kLog, options_.region_bytes, cluster_.write_quorum(),
        cluster_.node_count());
    absl::PrintF("feed        %s, %d lines, again and again\n", options_.file,
                 feed_.line_count());
    absl::PrintF("seed        %d\n\n", options_.seed);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  absl::Status StandAndElect() {
    for (int node = 1; node <= cluster_.node_count(); ++node) {
      ALPHEUS_RETURN_IF_ERROR(StartProgram(node));
    }
    absl::PrintF(
        "programs    alpheus append --stand --ack on each node, %d threads, "
        "with the node's replica:\n"
        "            each stands for primary, and appends while it is\n",
        options_.threads);
    std::fflush(stdout);
    ALPHEUS_ASSIGN_OR_RETURN(primary_, programs_.AwaitPrimary(nullptr, 1));
    PrintPrimary("elected");
    ALPHEUS_RETURN_IF_ERROR(programs_.AwaitStanding());
    return Append(DrawAcks());
  }

  absl::Status DieAndElect() {
    ALPHEUS_RETURN_IF_ERROR(programs_.ListenFor(
        static_cast<int64_t>(random_.Below(kDelayNanosMax))));
    ClusterWriter* const killed = primary_;
    const int64_t killed_at = Clock::Real().NowNanos();
    ALPHEUS_RETURN_IF_ERROR(killed->Kill());
    cluster_.Kill(killed->plan().node);
    absl::PrintF(
        "            killed in mid-stream with SIGKILL, and alpheusd of node "
        "%d too;\n"
        "            %d lines acknowledged\n\n",
        killed->plan().node, killed->ack_count());
    std::fflush(stdout);
    ALPHEUS_ASSIGN_OR_RETURN(primary_, programs_.AwaitPrimary(killed, 1));
    PrintPrimary("elected by the others");
    absl::PrintF(
        "            recovered the log without node %d: %.0f ms from the kill "
        "to the next acknowledgement\n",
        killed->plan().node, Millis(Clock::Real().NowNanos() - killed_at));
    killed_node_ = killed->plan().node;
    return Append(DrawAcks());
  }

  absl::Status ComeBack() {
    ALPHEUS_RETURN_IF_ERROR(cluster_.Start(killed_node_));
    ALPHEUS_RETURN_IF_ERROR(StartProgram(killed_node_));
    ALPHEUS_RETURN_IF_ERROR(programs_.AwaitStanding());
    absl::PrintF(
        "            node %d is back: it serves its replica, and its program "
        "stands again\n\n",
        killed_node_);
    std::fflush(stdout);
    return Append(DrawAcks() / 4);
  }

  // As an operator does before work on a machine, and after it.
  absl::Status DrainAndElect() {
    const int drained = primary_->plan().node;
    ALPHEUS_RETURN_IF_ERROR(Instruct("drain", drained));
    ALPHEUS_RETURN_IF_ERROR(Append(DrawAcks() / 4));
    return primary_->plan().node == killed_node_
               ? Instruct("elect", drained)
               : Instruct("elect", killed_node_);
  }

  // Runs the command, and shows it with what it says.
  absl::Status Instruct(const std::string& command, int node) {
    const ClusterWriter* const before = primary_;
    const uint64_t acknowledged = before->ack_count();
    absl::PrintF("operator    alpheus %s --log %s %d\n", command, kLog, node);
    std::fflush(stdout);
    ALPHEUS_ASSIGN_OR_RETURN(
        const std::string said,
        cluster_.MustSucceed(
            command, {"--log", kLog, "--timeout", "300", absl::StrCat(node)}));
    absl::PrintF("            %s", said);
    ALPHEUS_ASSIGN_OR_RETURN(primary_, programs_.AwaitPrimary(before, 1));
    PrintPrimary("elected");
    absl::PrintF(
        "            node %d had handed over in good order, with %d lines "
        "acknowledged meanwhile\n",
        before->plan().node, before->ack_count() - acknowledged);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  absl::Status End() {
    ALPHEUS_RETURN_IF_ERROR(Append(DrawAcks() / 4));
    // Those that wait would go on.
    for (const auto& program : programs_.all()) {
      if (program.get() != primary_) ALPHEUS_RETURN_IF_ERROR(program->Kill());
    }
    ALPHEUS_RETURN_IF_ERROR(MustEndWell(primary_));
    absl::PrintF("            ended; %d lines acknowledged by all programs\n\n",
                 programs_.AckCount());
    std::fflush(stdout);
    return absl::OkStatus();
  }

  // A node that missed something has it once an epoch is installed there.
  absl::Status OpenOnAll() {
    ALPHEUS_RETURN_IF_ERROR(cluster_.AwaitServed(kLog));
    ALPHEUS_RETURN_IF_ERROR(
        cluster_.MustSucceed("append", {"--node", "3", "--log", kLog})
            .status());
    absl::PrintF(
        "node 3      opened the log once more, with all nodes there\n");
    return absl::OkStatus();
  }

  absl::Status ProveReplicas() {
    uint64_t last_epoch = 0;
    std::vector<uint64_t> epochs;
    for (int node = 1; node <= cluster_.node_count(); ++node) {
      ALPHEUS_ASSIGN_OR_RETURN(epochs.emplace_back(), EpochOf(node));
      last_epoch = std::max(last_epoch, epochs.back());
    }
    int proven = 0;
    for (int node = 1; node <= cluster_.node_count(); ++node) {
      if (epochs[static_cast<size_t>(node) - 1] != last_epoch) {
        absl::PrintF("replica %d   epoch %d: not of the last epoch, %d\n", node,
                     epochs[static_cast<size_t>(node) - 1], last_epoch);
        continue;
      }
      ALPHEUS_RETURN_IF_ERROR(ProveReplica(node, last_epoch));
      ++proven;
    }
    if (proven >= cluster_.write_quorum()) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("epoch ", last_epoch, " is on ",
                                            proven, " replicas only, not on ",
                                            cluster_.write_quorum()));
  }

  absl::Status ProveReplica(int node, uint64_t epoch) {
    HistoryFacts facts;
    facts.writers = programs_.Terms();
    ALPHEUS_ASSIGN_OR_RETURN(facts.recovered, ReadReplica(node));
    const Judgement judgement = JudgeHistory(feed_, facts);
    if (!judgement.holds()) {
      return absl::DataLossError(
          absl::StrCat("replica of node ", node, ", epoch ", epoch, ":\n",
                       absl::StrJoin(judgement.violations, "\n")));
    }
    absl::PrintF(
        "replica %d   epoch %d: %d lines; all %d acknowledged are there byte "
        "by byte,\n"
        "            %d more were in flight; lost 0, duplicated 0, invented 0, "
        "out of order 0\n",
        node, epoch, facts.recovered.size(), programs_.AckCount(),
        judgement.unacknowledged_count);
    return absl::OkStatus();
  }

  uint64_t DrawAcks() { return AcksMax() / 4 + random_.Below(AcksMax()); }

  // The acknowledgements waited for must fit the ring several times over.
  uint64_t AcksMax() const {
    return std::clamp<uint64_t>(
        options_.region_bytes / 32 / feed_.mean_record_bytes(), 4, kAcksMax);
  }

  absl::Status StartProgram(int node) {
    ClusterWriterPlan plan;
    plan.node = node;
    plan.has_own_replica = true;
    plan.log = kLog;
    plan.threads = options_.threads;
    plan.first_number = programs_.all().size() * kNumbersPerWriter;
    for (const WriterFacts& term : programs_.Terms()) {
      for (const Acknowledgement& ack : term.acknowledgements) {
        plan.lsn_floor = std::max(plan.lsn_floor, ack.record.lsn);
      }
    }
    plan.limits = {.ring_bytes_max = options_.region_bytes / kProgramShare,
                   .unacknowledged_max = kUnacknowledgedMax};
    // A busy machine must not end it.
    plan.options = {"--ack-timeout-ms", "10000"};
    return programs_.Start(std::move(plan)).status();
  }

  void PrintPrimary(const char* how) {
    const std::vector<uint64_t> epochs = primary_->Epochs();
    absl::PrintF("node %d      %s: primary of epoch %d\n",
                 primary_->plan().node, how,
                 epochs.empty() ? 0 : epochs.back());
    std::fflush(stdout);
  }

  // So many lines more, by whoever is primary then.
  absl::Status Append(uint64_t ack_count) {
    ALPHEUS_ASSIGN_OR_RETURN(
        primary_,
        programs_.AwaitPrimary(nullptr, std::max<uint64_t>(ack_count, 1)));
    return absl::OkStatus();
  }

  absl::Status MustEndWell(ClusterWriter* writer) {
    writer->EndInput();
    ALPHEUS_ASSIGN_OR_RETURN(const ProcessEnd end,
                             writer->RunToEnd(kPatienceNanos));
    if (end.exit_status == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(writer->ToString(), " ended with ",
                                            end.ToString(),
                                            "; it said: ", writer->said()));
  }

  absl::StatusOr<std::string> RunOnFile(
      const std::string& command, int node,
      const std::vector<std::string>& arguments) {
    Program program;
    program.argv = {cluster_.alpheus(), command, "--file",
                    cluster_.region(node, kLog)};
    program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
    ALPHEUS_ASSIGN_OR_RETURN(ProgramResult result, RunProgram(program));
    if (result.end.exit_status == 0) return std::move(result.output);
    return absl::DataLossError(absl::StrCat(absl::StrJoin(program.argv, " "),
                                            ": ", result.end.ToString(), ": ",
                                            result.error));
  }

  absl::StatusOr<uint64_t> EpochOf(int node) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::string output,
                             RunOnFile("inspect", node, {"--json"}));
    return NumberIn(output, "log_epoch");
  }

  absl::StatusOr<std::vector<RecoveredRecord>> ReadReplica(int node) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::string framed,
                             RunOnFile("cat", node, {"--framing", "len32"}));
    ALPHEUS_ASSIGN_OR_RETURN(const std::string lines,
                             RunOnFile("cat", node, {"--json"}));
    return ParseRecords(framed, lines);
  }

  const ClusterDemoOptions& options_;
  const Feed& feed_;
  Cluster& cluster_;
  Random random_;
  StandingPrograms programs_;
  ClusterWriter* primary_ = nullptr;  // the last one that appended
  int killed_node_ = 0;
};

void PrintSuccess() {
  absl::PrintF(
      "\nverdict     every acknowledged line is on every replica of the last "
      "epoch\n"
      "\nThis shows that a primary is replaced without an operator, and that\n"
      "killing a node loses nothing. It does not show what a power cut does:\n"
      "the page cache outlives a SIGKILL, and all nodes are on this machine.\n"
      "Power cuts are tested by the crash model in tests/crash (tools/dev "
      "test),\n"
      "other faults by tools/dev nemesis.\n");
}

// Why the membership is static here; empty: it need not be.
std::string WhyStatic() {
  const std::string missing = ZookeeperServers::WhyMissing();
  if (!missing.empty()) return missing;
  return quorum::HasZookeeperClient() ? ""
                                      : "built without libzookeeper-st-dev";
}

// Starts a server of ZooKeeper where there is one, and says which membership
// the cluster has.
absl::Status StartZookeeper(const std::string& directory,
                            std::optional<ZookeeperServers>* servers,
                            ClusterOptions* cluster) {
  if (const std::string why = WhyStatic(); !why.empty()) {
    absl::PrintF(
        "membership  static: ballots and candidates by the nodes alone. "
        "ZooKeeper would keep them, too\n"
        "            (%s)\n",
        why);
    std::fflush(stdout);
    return absl::OkStatus();
  }
  servers->emplace(1, directory);
  ALPHEUS_RETURN_IF_ERROR((*servers)->StartAll());
  if (!(*servers)->AwaitAll()) {
    return absl::UnavailableError(
        absl::StrCat("ZooKeeper does not answer: ", (*servers)->Said()));
  }
  cluster->zookeeper = {(*servers)->addresses()[0].ToString()};
  absl::PrintF(
      "membership  ZooKeeper on %s names members, candidates and the primary, "
      "and gives ballots\n",
      cluster->zookeeper[0]);
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunClusterDemo(const ClusterDemoOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(const Feed feed, Feed::Load(options.file));
  ALPHEUS_ASSIGN_OR_RETURN(WorkDirectory directory,
                           WorkDirectory::Create(options.directory));
  ClusterOptions cluster_options;
  ALPHEUS_ASSIGN_OR_RETURN(const std::string own, OwnDirectory());
  cluster_options.alpheus = absl::StrCat(own, "/alpheus");
  cluster_options.alpheusd = absl::StrCat(own, "/alpheusd");
  cluster_options.directory = directory.path();
  std::optional<ZookeeperServers> servers;
  ALPHEUS_RETURN_IF_ERROR(
      StartZookeeper(directory.path(), &servers, &cluster_options));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster,
                           Cluster::Create(cluster_options));
  const absl::Status status = Demo(options, &feed, cluster.get()).Run();
  if (status.ok()) PrintSuccess();
  if (!absl::IsDataLoss(status) && !absl::IsDeadlineExceeded(status)) {
    return status;
  }
  return absl::DataLossError(absl::StrCat(
      "VIOLATED, seed ", options.seed, ":\n", status.message(), "\n",
      cluster->Story(), "The regions are kept in ", directory.Keep()));
}

}  // namespace alpheus::demo
