// SPDX-License-Identifier: Apache-2.0
// cluster_folder: a cluster on this machine in a folder of its own: a cluster
// file, and for each node a directory with an empty replica of each log.
//
// It is removed with everything in it when it goes. Node 1 is the primary's.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_REPLICATED_CANDIDATES_CLUSTER_FOLDER_H_
#define ALPHEUS_BENCH_REPLICATED_CANDIDATES_CLUSTER_FOLDER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::replicated {

// Of log `log`, from 0 on.
std::string BenchLogName(int log);

// A new folder below `parent`, removed when this goes.
class ScratchFolder {
 public:
  // Errors: Unavailable.
  static absl::StatusOr<ScratchFolder> Make(const std::string& parent);
  ScratchFolder(ScratchFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")) {}
  ScratchFolder& operator=(ScratchFolder&& other) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Ports of 127.0.0.1 for listeners with SO_REUSEADDR; for a minute the kernel
// chooses none of them for anybody. Errors: Unavailable.
absl::StatusOr<std::vector<uint16_t>> FreePorts(int count);

struct ClusterShape {
  std::string parent;       // where the folder is made
  uint64_t ring_bytes = 0;  // of each replica
  int nodes = 2;
  int write_quorum = 2;
  int logs = 1;
  // Of adapters with RDMA, by nodes; none: 127.0.0.1, over TCP.
  std::vector<std::string> hosts = {};
};

class ClusterFolder {
 public:
  // Errors: Unavailable, and those of ReplicaFile::Create.
  static absl::StatusOr<ClusterFolder> Make(const ClusterShape& shape);

  const std::string& path() const { return folder_.path(); }

  // Of a folder that this process or another one has made.
  static std::string ClusterFile(const std::string& folder);
  static std::string DirectoryOf(const std::string& folder, uint64_t node);
  static std::string ReplicaOf(const std::string& folder, uint64_t node,
                               int log = 0);

 private:
  explicit ClusterFolder(ScratchFolder folder) : folder_(std::move(folder)) {}

  absl::Status Fill(const ClusterShape& shape) const;
  absl::Status MakeReplicas(const ClusterShape& shape, int log) const;

  ScratchFolder folder_;
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_CANDIDATES_CLUSTER_FOLDER_H_
