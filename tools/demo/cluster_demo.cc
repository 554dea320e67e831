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
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/cluster.h"
#include "tools/nemesis/cluster_writer.h"
#include "tools/nemesis/feed.h"
#include "tools/nemesis/log_output.h"
#include "tools/nemesis/millis.h"
#include "tools/nemesis/recovery_oracle.h"
#include "tools/nemesis/work_directory.h"

namespace alpheus::demo {
namespace {

constexpr char kLog[] = "main";
constexpr int64_t kPatienceNanos = 300'000'000'000;
constexpr uint64_t kAcksMax = 20'000;
// Largest delay of the kill after the drawn acknowledgement.
constexpr uint64_t kDelayNanosMax = 1'000'000;
constexpr uint64_t kUnacknowledgedMax = 2'000;
constexpr uint64_t kNumbersPerWriter = 1 << 24;

class Demo {
 public:
  Demo(const ClusterDemoOptions& options, const Feed* feed, Cluster* cluster)
      : options_(options),
        feed_(*feed),
        cluster_(*cluster),
        random_(options.seed) {}

  absl::Status Run() {
    ALPHEUS_RETURN_IF_ERROR(Begin());
    ALPHEUS_RETURN_IF_ERROR(WriteAndDie());
    ALPHEUS_RETURN_IF_ERROR(RecoverAndContinue());
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

  absl::Status WriteAndDie() {
    ALPHEUS_ASSIGN_OR_RETURN(ClusterWriter * primary, StartWriter(1));
    ALPHEUS_RETURN_IF_ERROR(MustReach(primary, 1));
    ALPHEUS_RETURN_IF_ERROR(PrintPrimary(*primary));
    ALPHEUS_RETURN_IF_ERROR(MustReach(primary, DrawAcks()));
    ALPHEUS_RETURN_IF_ERROR(
        primary
            ->RunUntil(UINT64_MAX,
                       static_cast<int64_t>(random_.Below(kDelayNanosMax)))
            .status());
    ALPHEUS_RETURN_IF_ERROR(primary->Kill());
    cluster_.Kill(1);
    absl::PrintF(
        "            killed in mid-stream with SIGKILL, and alpheusd of node 1 "
        "too\n"
        "            %d lines acknowledged, %d fed\n\n",
        primary->ack_count(), primary->Facts().fed_count);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  absl::Status RecoverAndContinue() {
    ALPHEUS_ASSIGN_OR_RETURN(ClusterWriter * successor, StartWriter(2));
    ALPHEUS_RETURN_IF_ERROR(MustReach(successor, 1));
    ALPHEUS_RETURN_IF_ERROR(PrintPrimary(*successor));
    absl::PrintF(
        "            recovered the log without node 1: %.3f ms from its start "
        "to its first acknowledgement\n",
        Millis(*successor->first_ack_nanos() - successor->start_nanos()));
    ALPHEUS_RETURN_IF_ERROR(MustReach(successor, DrawAcks()));
    ALPHEUS_RETURN_IF_ERROR(cluster_.Start(1));
    absl::PrintF("            alpheusd of node 1 is back\n");
    ALPHEUS_RETURN_IF_ERROR(
        MustReach(successor, successor->ack_count() + DrawAcks() / 4));
    ALPHEUS_RETURN_IF_ERROR(MustEndWell(successor));
    absl::PrintF("            ended; %d lines acknowledged, %d fed\n\n",
                 successor->ack_count(), successor->Facts().fed_count);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  // The log that node 1 missed comes to it when an epoch is installed there.
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
    for (const auto& writer : writers_) {
      facts.writers.push_back(writer->Facts());
    }
    ALPHEUS_ASSIGN_OR_RETURN(facts.recovered, ReadReplica(node));
    const Judgement judgement = JudgeHistory(feed_, facts);
    if (!judgement.holds()) {
      return absl::DataLossError(
          absl::StrCat("replica of node ", node, ", epoch ", epoch, ":\n",
                       absl::StrJoin(judgement.violations, "\n")));
    }
    uint64_t acknowledged = 0;
    for (const auto& writer : writers_) acknowledged += writer->ack_count();
    absl::PrintF(
        "replica %d   epoch %d: %d lines; all %d acknowledged are there byte "
        "by byte,\n"
        "            %d more were in flight; lost 0, duplicated 0, invented 0, "
        "out of order 0\n",
        node, epoch, facts.recovered.size(), acknowledged,
        judgement.unacknowledged_count);
    return absl::OkStatus();
  }

  uint64_t DrawAcks() { return AcksMax() / 4 + random_.Below(AcksMax()); }

  // The acknowledgements waited for must fit the ring several times over.
  uint64_t AcksMax() const {
    return std::clamp<uint64_t>(
        options_.region_bytes / 16 / feed_.mean_record_bytes(), 1, kAcksMax);
  }

  absl::StatusOr<ClusterWriter*> StartWriter(int node) {
    ClusterWriterPlan plan;
    plan.node = node;
    plan.has_own_replica = true;
    plan.log = kLog;
    plan.threads = options_.threads;
    plan.first_number = writers_.size() * kNumbersPerWriter;
    for (const auto& writer : writers_) {
      for (const Acknowledgement& ack : writer->Facts().acknowledgements) {
        plan.lsn_floor = std::max(plan.lsn_floor, ack.record.lsn);
      }
    }
    plan.limits = {.ring_bytes_max = options_.region_bytes / 3,
                   .unacknowledged_max = kUnacknowledgedMax};
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ClusterWriter> writer,
                             ClusterWriter::Start(&cluster_, &feed_, plan));
    writers_.push_back(std::move(writer));
    return writers_.back().get();
  }

  absl::Status PrintPrimary(const ClusterWriter& writer) {
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t epoch, EpochOf(writer.plan().node));
    absl::PrintF(
        "node %d      primary of epoch %d: alpheus append --ack, %d threads, "
        "with its own replica\n",
        writer.plan().node, epoch, options_.threads);
    std::fflush(stdout);
    return absl::OkStatus();
  }

  absl::Status MustReach(ClusterWriter* writer, uint64_t ack_count) {
    ALPHEUS_ASSIGN_OR_RETURN(const bool reached,
                             writer->RunUntil(ack_count, kPatienceNanos));
    if (reached) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(writer->ToString(), " has acknowledged ",
                     writer->ack_count(), " lines, not the ", ack_count,
                     " waited for; it said: ", writer->said()));
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
  std::vector<std::unique_ptr<ClusterWriter>> writers_;
};

void PrintSuccess() {
  absl::PrintF(
      "\nverdict     every acknowledged line is on every replica of the last "
      "epoch\n"
      "\nThis shows that killing a node loses nothing. It does not show what "
      "a\n"
      "power cut does: the page cache outlives a SIGKILL, and all nodes are "
      "on\n"
      "this machine. Power cuts are tested by the crash model in tests/crash\n"
      "(tools/dev test), other faults by tools/dev nemesis.\n");
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
