// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/alpheus.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "api/node/node.h"
#include "api/node/replica_file.h"
#include "bench/replicated/backup_process.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster_file.h"
#include "quorum/log_id.h"
#include "replication/fabric/tcp/tcp_fabric.h"

namespace alpheus::bench::replicated {
namespace {

constexpr const char* kSpinKind = "alpheus-spin";
constexpr const char* kBlockKind = "alpheus-block";
constexpr const char* kLogName = "bench";
// What a node waits for before it sleeps: for ever, as the floor does.
constexpr uint32_t kForEver = std::numeric_limits<uint32_t>::max() / 2;
constexpr uint64_t kFixedPartBytes = uint64_t{128} << 10;  // of a region

std::string ClusterFile(const std::string& folder) {
  return absl::StrCat(folder, "/cluster.toml");
}
std::string DirectoryOf(const std::string& folder, uint64_t node) {
  return absl::StrCat(folder, "/node", node);
}
std::string ReplicaOf(const std::string& folder, uint64_t node) {
  return absl::StrCat(DirectoryOf(folder, node), "/", kLogName, ".alpheus");
}

// Addresses that were free a moment ago.
absl::StatusOr<std::vector<std::string>> FreeAddresses(int count) {
  EntropyRandom random;
  std::vector<std::unique_ptr<TcpFabric>> listeners;
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
    listeners.push_back(
        std::make_unique<TcpFabric>(TcpFabricOptions(), Clock::Real(), random));
    ALPHEUS_ASSIGN_OR_RETURN(std::string address,
                             listeners.back()->Listen("127.0.0.1:0"));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

// A folder with the cluster file and one empty replica for each node; every
// node must have a record before it is durable, as in the floor.
class ClusterFolder {
 public:
  static absl::StatusOr<std::unique_ptr<ClusterFolder>> Make(const Work& work) {
    std::string path = absl::StrCat(work.folder, "/alpheus-bench-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat(work.folder, ": no folder can be made there"));
    }
    std::unique_ptr<ClusterFolder> made(new ClusterFolder(path));
    ALPHEUS_RETURN_IF_ERROR(made->Fill(work));
    return made;
  }
  ~ClusterFolder() {
    std::error_code ignored;  // a leftover on a temporary file system
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  explicit ClusterFolder(std::string path) : path_(std::move(path)) {}

  absl::Status Fill(const Work& work) const {
    const int nodes = work.backups + 1;
    ALPHEUS_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                             FreeAddresses(nodes));
    std::ofstream file(ClusterFile(path_));
    file << "cluster_id = \"5d0d9e7e-4a37-4c58-9d3f-6f2a1f0a7b11\"\n"
         << "write_quorum = " << nodes << "\n";
    Format format;
    format.region_bytes = work.ring_bytes + kFixedPartBytes;
    format.log_name = kLogName;
    format.configuration.replica_count = static_cast<uint32_t>(nodes);
    format.configuration.write_quorum = static_cast<uint32_t>(nodes);
    EntropyRandom random;
    for (int node = 1; node <= nodes; ++node) {
      file << "[[member]]\nnode = " << node << "\naddress = \""
           << addresses[node - 1] << "\"\n";
      format.configuration.members.push_back({NodeId(node), random.Next() | 1});
    }
    file.close();
    return MakeReplicas(format);
  }

  absl::Status MakeReplicas(const Format& format) const {
    ALPHEUS_ASSIGN_OR_RETURN(const ClusterConfiguration cluster,
                             LoadClusterFile(ClusterFile(path_)));
    for (const Member& member : format.configuration.members) {
      std::error_code error;
      std::filesystem::create_directory(DirectoryOf(path_, member.node.value),
                                        error);
      const ReplicaIdentity identity{cluster.cluster_id,
                                     LogIdOf(cluster.cluster_id, kLogName),
                                     member.node};
      ALPHEUS_RETURN_IF_ERROR(
          ReplicaFile::Create(ReplicaOf(path_, member.node.value), identity,
                              format)
              .status());
    }
    return absl::OkStatus();
  }

  const std::string path_;
};

class AlpheusCandidate final : public Candidate {
 public:
  explicit AlpheusCandidate(const Work& work) : work_(work) {}

  std::string name() const override { return kAlpheusName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    payload_.assign(payload_bytes, 'Z');
    ALPHEUS_ASSIGN_OR_RETURN(folder_, ClusterFolder::Make(work_));
    for (int node = 2; node <= work_.backups + 1; ++node) {
      ALPHEUS_ASSIGN_OR_RETURN(
          BackupProcess process,
          BackupProcess::Start(
              waiting == Waiting::kSpin ? kSpinKind : kBlockKind,
              folder_->path(), static_cast<uint64_t>(node)));
      backups_.push_back(std::make_unique<BackupProcess>(std::move(process)));
    }
    LogOptions options;
    options.path = ReplicaOf(folder_->path(), 1);
    options.replication.cluster_file = ClusterFile(folder_->path());
    options.replication.node = 1;
    options.replication.log_name = kLogName;
    options.replication.gather_ms = 10'000;
    options.replication.silence_ms = 60'000;
    options.replication.yields = waiting == Waiting::kSpin ? kForEver : 0;
    ALPHEUS_ASSIGN_OR_RETURN(log_, Log::Open(options));
    uncleaned_bytes_ = 0;
    return absl::OkStatus();
  }

  // Cleaning, which the log needs and the floor does not, is in the time.
  absl::Status Append() override {
    ALPHEUS_ASSIGN_OR_RETURN(const Lsn lsn, log_->Append(payload_));
    uncleaned_bytes_ += payload_.size();
    if (uncleaned_bytes_ < work_.ring_bytes / 8) return absl::OkStatus();
    uncleaned_bytes_ = 0;
    return log_->CleanupThrough(lsn);
  }

  absl::Status End() override {
    const absl::Status closed = log_->Close();
    log_.reset();
    backups_.clear();
    folder_.reset();
    return closed;
  }

 private:
  const Work work_;
  std::string payload_;
  std::unique_ptr<ClusterFolder> folder_;
  std::vector<std::unique_ptr<BackupProcess>> backups_;
  std::unique_ptr<Log> log_;
  uint64_t uncleaned_bytes_ = 0;
};

}  // namespace

MakeCandidate Alpheus() {
  return [](const Work& work) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    return std::make_unique<AlpheusCandidate>(work);
  };
}

bool IsAlpheusKind(std::string_view kind) {
  return kind == kSpinKind || kind == kBlockKind;
}

absl::Status ServeAlpheus(std::string_view kind, const std::string& folder,
                          uint64_t node) {
  NodeOptions options;
  options.cluster_file = ClusterFile(folder);
  options.node = node;
  options.directory = DirectoryOf(folder, node);
  options.yield_turns = kind == kSpinKind ? kForEver : 0;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Node> served,
                           Node::Start(std::move(options)));
  AnnounceAddress(served->address());
  served->Run();
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
