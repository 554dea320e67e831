// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/alpheus.h"

#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alpheus/log.h"
#include "api/node/node.h"
#include "bench/harness/clock.h"
#include "bench/harness/samples.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr const char* kSpinKind = "alpheus-spin";
constexpr const char* kSpinUnsummedKind = "alpheus-spin-unsummed";
constexpr const char* kBlockUnsummedKind = "alpheus-block-unsummed";
// Turns of a node before it sleeps: for ever, like the floor.
constexpr uint32_t kForEver = std::numeric_limits<uint32_t>::max() / 2;

class AlpheusCandidate final : public Candidate {
 public:
  AlpheusCandidate(AlpheusVariant variant, const Work& work)
      : variant_(std::move(variant)), work_(work) {}

  std::string name() const override { return variant_.name; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    payload_.assign(payload_bytes, 'Z');
    ALPHEUS_ASSIGN_OR_RETURN(cluster_,
                             AlpheusCluster::Start(variant_, work_, waiting));
    ALPHEUS_ASSIGN_OR_RETURN(log_, cluster_->Open());
    uncleaned_bytes_ = 0;
    return absl::OkStatus();
  }

  // Cleaning, which the log needs and the floor does not, is in the time.
  absl::Status Append() override {
    ALPHEUS_RETURN_IF_ERROR(variant_.is_by_steps ? AppendBySteps()
                                                 : AppendBatch());
    uncleaned_bytes_ += payload_.size() * work_.batch;
    if (uncleaned_bytes_ < work_.ring_bytes / 8) return absl::OkStatus();
    uncleaned_bytes_ = 0;
    return log_->CleanupThrough(log_->durable_lsn());
  }

  void StartMeasuring() override { steps_ = {}; }

  void AddMetrics(std::map<std::string, double>* metrics) const override {
    if (steps_.copy_ns.empty()) return;
    (*metrics)["copy"] = Median(steps_.copy_ns);
    (*metrics)["force"] = Median(steps_.force_ns);
  }

  absl::Status End() override {
    const absl::Status closed = log_->Close();
    log_.reset();
    cluster_.reset();
    return closed;
  }

 private:
  // Times of the steps in this turn, by record.
  struct Steps {
    std::vector<double> copy_ns;
    std::vector<double> force_ns;
  };

  absl::Status AppendBatch() {
    if (work_.batch == 1) {
      return log_->Append(payload_, OptionsOf(variant_.policy)).status();
    }
    Lsn lsn;
    for (uint64_t i = 0; i < work_.batch; ++i) {
      ALPHEUS_ASSIGN_OR_RETURN(
          lsn, log_->Append(payload_,
                            {.frequency = static_cast<uint32_t>(work_.batch)}));
    }
    // Batches end where the policy forces, unless something took an LSN.
    if (log_->durable_lsn() >= lsn) return absl::OkStatus();
    return log_->Force(lsn);
  }

  absl::Status AppendBySteps() {
    ALPHEUS_ASSIGN_OR_RETURN(Reservation record,
                             log_->Reserve(payload_.size()));
    const int64_t start = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(
        log_->Copy(record, 0, std::as_bytes(std::span(payload_))));
    const int64_t copied = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, log_->Complete(std::move(record)));
    const int64_t completed = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(log_->Force(lsn));
    steps_.force_ns.push_back(static_cast<double>(NowNanos() - completed));
    steps_.copy_ns.push_back(static_cast<double>(copied - start));
    return absl::OkStatus();
  }

  const AlpheusVariant variant_;
  const Work work_;
  std::string payload_;
  std::unique_ptr<AlpheusCluster> cluster_;
  std::unique_ptr<Log> log_;
  uint64_t uncleaned_bytes_ = 0;
  Steps steps_;
};

const char* KindOf(const AlpheusVariant& variant, Waiting waiting) {
  if (waiting == Waiting::kSpin) {
    return variant.is_unsummed ? kSpinUnsummedKind : kSpinKind;
  }
  return variant.is_unsummed ? kBlockUnsummedKind : kAlpheusBlockKind;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AlpheusCluster>> AlpheusCluster::Start(
    const AlpheusVariant& variant, const Work& work, Waiting waiting,
    int logs) {
  const int own = variant.is_remote_only ? 0 : 1;
  const int nodes = work.backups + own;
  ALPHEUS_ASSIGN_OR_RETURN(
      ClusterFolder folder,
      ClusterFolder::Make({.parent = work.folder,
                           .ring_bytes = work.ring_bytes,
                           .nodes = nodes,
                           .write_quorum = work.copies() - 1 + own,
                           .logs = logs,
                           .hosts = work.hosts}));
  std::unique_ptr<AlpheusCluster> made(
      new AlpheusCluster(variant, waiting, std::move(folder)));
  for (int node = 1 + own; node <= nodes; ++node) {
    ALPHEUS_ASSIGN_OR_RETURN(
        BackupProcess process,
        BackupProcess::Start(KindOf(variant, waiting), made->folder_.path(),
                             static_cast<uint64_t>(node)));
    made->backups_.push_back(std::move(process));
  }
  return made;
}

absl::StatusOr<std::unique_ptr<Log>> AlpheusCluster::Open(int log) const {
  return Log::Open(LogOptionsIn(folder(), variant_, waiting_, log));
}

LogOptions LogOptionsIn(const std::string& folder,
                        const AlpheusVariant& variant, Waiting waiting,
                        int log) {
  LogOptions options;
  if (!variant.is_remote_only) {
    options.path = ClusterFolder::ReplicaOf(folder, 1, log);
  }
  options.replication.cluster_file = ClusterFolder::ClusterFile(folder);
  options.replication.node = 1;
  options.replication.log_name = BenchLogName(log);
  options.replication.flush_order = variant.flush_order;
  options.replication.gather_ms = 10'000;
  options.replication.ack_timeout_ms = 60'000;
  options.replication.yields = waiting == Waiting::kSpin ? kForEver : 0;
  return options;
}

MakeCandidate Alpheus(AlpheusVariant variant) {
  return [variant = std::move(variant)](
             const Work& work) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    return std::make_unique<AlpheusCandidate>(variant, work);
  };
}

bool IsAlpheusKind(std::string_view kind) {
  return kind == kSpinKind || kind == kAlpheusBlockKind ||
         kind == kSpinUnsummedKind || kind == kBlockUnsummedKind;
}

absl::Status ServeAlpheus(std::string_view kind, const std::string& folder,
                          uint64_t node) {
  NodeOptions options;
  options.cluster_file = ClusterFolder::ClusterFile(folder);
  options.node = node;
  options.directory = ClusterFolder::DirectoryOf(folder, node);
  const bool spins = kind == kSpinKind || kind == kSpinUnsummedKind;
  options.threads = 1;  // for one log; another one would spin for nothing
  options.yield_turns = spins ? kForEver : 0;
  if (kind == kSpinUnsummedKind || kind == kBlockUnsummedKind) {
    options.platform.transport = replication::Transport::kInfiniBand;
  }
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Node> served,
                           Node::Start(std::move(options)));
  AnnounceAddress(served->address());
  return served->Run();
}

}  // namespace alpheus::bench::replicated
