// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/alpheus/three_nodes.h"

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/candidate.h"
#include "bench/failover/alpheus/cut.h"
#include "bench/failover/alpheus/fail_over.h"
#include "bench/failover/alpheus/notes.h"
#include "bench/failover/alpheus/processes.h"
#include "bench/failover/times.h"
#include "bench/harness/clock.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/candidates/own_process.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {

using replicated::BenchLogName;
using replicated::ClusterFolder;
using replicated::OwnProcess;

namespace {

constexpr uint64_t kNodes = 3;
constexpr uint64_t kFirst = 1;  // its program is primary first
constexpr std::chrono::seconds kClusterStartTimeout{60};
constexpr std::chrono::milliseconds kLookAtNotesAgain{1};

absl::Status Await(const std::string& what, std::chrono::nanoseconds timeout,
                   const std::function<bool()>& is_so) {
  const int64_t end = NowNanos() + timeout.count();
  while (!is_so()) {
    if (NowNanos() > end) {
      return absl::DeadlineExceededError(
          absl::StrCat("alpheus: ", what, ": not within ",
                       std::chrono::duration<double>(timeout).count(), " s"));
    }
    std::this_thread::sleep_for(kLookAtNotesAgain);
  }
  return absl::OkStatus();
}

// A process, and what it tells.
struct Told {
  NotesFile notes;
  OwnProcess process;
};

absl::StatusOr<Told> Start(const std::string& folder, const std::string& kind,
                           uint64_t node, uint64_t log_mib) {
  ALPHEUS_ASSIGN_OR_RETURN(NotesFile notes,
                           NotesFile::Open(NotesOf(folder, kind, node)));
  ALPHEUS_ASSIGN_OR_RETURN(OwnProcess process,
                           OwnProcess::Start({kind, folder, absl::StrCat(node),
                                              absl::StrCat(log_mib)}));
  return Told{std::move(notes), std::move(process)};
}

// One cluster, for one fail-over.
class Cluster {
 public:
  static absl::StatusOr<std::unique_ptr<Cluster>> Start(
      const std::string& parent, uint64_t log_mib) {
    ALPHEUS_ASSIGN_OR_RETURN(
        ClusterFolder folder,
        ClusterFolder::Make({.parent = parent,
                             .ring_bytes = RingBytesFor(log_mib),
                             .nodes = static_cast<int>(kNodes),
                             .write_quorum = 2}));
    auto made = std::make_unique<Cluster>(std::move(folder));
    ALPHEUS_RETURN_IF_ERROR(made->StartProcesses(log_mib));
    return made;
  }

  explicit Cluster(ClusterFolder folder) : folder_(std::move(folder)) {}

  // Takes the primary away under load, and waits for the next one's first
  // record. Errors: Aborted (the round is void, FOV1); DeadlineExceeded.
  absl::StatusOr<Parts> Run(Fault fault) const {
    std::vector<const Notes*> notes;
    for (const Told& one : programs_) notes.push_back(&*one.notes);
    const FailOver fail_over(std::move(notes));
    std::this_thread::sleep_for(LoadTime());
    ALPHEUS_RETURN_IF_ERROR(fail_over.CheckBegin());
    ALPHEUS_ASSIGN_OR_RETURN(const int64_t fault_ns, Lose(fault));
    const Notes* next = nullptr;
    ALPHEUS_RETURN_IF_ERROR(
        Await("the next primary's first record", kFailOverTimeout,
              [&] { return (next = fail_over.Next(fault_ns)) != nullptr; }));
    return fail_over.PartsOf(*next, fault_ns);
  }

 private:
  // Returns when the primary was lost.
  absl::StatusOr<int64_t> Lose(Fault fault) const {
    switch (fault) {
      case Fault::kKill:
        return LoseBySignal(SIGKILL);
      case Fault::kStop:
        return LoseBySignal(SIGSTOP);
      case Fault::kCut:
        return CutPrimaryOff();
      case Fault::kDrain:
        return Drain();
    }
    return absl::InvalidArgumentError("no such fault");
  }

  // The first one has the log, and all of its size, before others stand.
  absl::Status StartProcesses(uint64_t log_mib) {
    for (uint64_t node = kFirst; node <= kNodes; ++node) {
      ALPHEUS_ASSIGN_OR_RETURN(
          Told started,
          failover::Start(folder_.path(), kNodeKind, node, log_mib));
      nodes_.push_back(std::move(started));
    }
    for (uint64_t node = kFirst; node <= kNodes; ++node) {
      ALPHEUS_ASSIGN_OR_RETURN(
          Told started,
          failover::Start(folder_.path(), kProgramKind, node, log_mib));
      programs_.push_back(std::move(started));
      const Notes& notes = *programs_.back().notes;
      ALPHEUS_RETURN_IF_ERROR(
          Await(absl::StrCat("node ", node, " stands"), kClusterStartTimeout,
                [&] { return notes.stands_ns.load() != 0; }));
      if (node != kFirst) continue;
      ALPHEUS_RETURN_IF_ERROR(
          Await("the first primary's log", kClusterStartTimeout,
                [&] { return notes.loaded_ns.load() != 0; }));
    }
    return absl::OkStatus();
  }

  int64_t LoseBySignal(int signal) const {
    const int64_t now = NowNanos();
    programs_.front().process.Signal(signal);
    return now;
  }

  // The primary is lost once nothing comes to it any more. Nodes get what it
  // sends for some milliseconds more.
  absl::StatusOr<int64_t> CutPrimaryOff() const {
    const Notes& cut = *programs_.front().notes;
    programs_.front().process.Signal(CutSignal());
    ALPHEUS_RETURN_IF_ERROR(Await("the primary's cut", kClusterStartTimeout,
                                  [&] { return cut.cut_ns.load() != 0; }));
    for (const Told& node : nodes_) {
      for (uint32_t i = 0; i < cut.port_count.load(); ++i) {
        node.notes->ports[i].store(cut.ports[i].load());
      }
      node.notes->port_count.store(cut.port_count.load());
      node.process.Signal(CutSignal());
    }
    for (const Told& node : nodes_) {
      ALPHEUS_RETURN_IF_ERROR(Await("a node's cut", kClusterStartTimeout, [&] {
        return node.notes->cut_ns.load() != 0;
      }));
    }
    return cut.cut_ns.load();
  }

  absl::StatusOr<int64_t> Drain() const {
    ElectOptions options;
    options.cluster_file = ClusterFolder::ClusterFile(folder_.path());
    options.log_name = BenchLogName(0);
    options.node = kFirst;
    const int64_t now = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(Candidate::Drain(options).status());
    return now;
  }

  const ClusterFolder folder_;
  // By node. Programs end first.
  std::vector<Told> nodes_;
  std::vector<Told> programs_;
};

class AlpheusContestant final : public Contestant {
 public:
  explicit AlpheusContestant(std::string folder) : folder_(std::move(folder)) {}

  std::string name() const override { return kAlpheusName; }
  int TriesMax(const absl::Status& ended) const override {
    return absl::IsAborted(ended) ? kVoidTriesMax : 1;
  }

  absl::StatusOr<Parts> Run(Fault fault, uint64_t log_mib) override {
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster,
                             Cluster::Start(folder_, log_mib));
    return cluster->Run(fault);
  }

 private:
  const std::string folder_;
};

}  // namespace

std::unique_ptr<Contestant> Alpheus(std::string folder) {
  return std::make_unique<AlpheusContestant>(std::move(folder));
}

}  // namespace alpheus::bench::failover
