// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/cluster_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "api/node/replica_file.h"
#include "bench/replicated/candidates/raw_socket.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"

namespace alpheus::bench::replicated {
namespace {

constexpr uint64_t kFixedPartBytes = uint64_t{128} << 10;  // of a region

absl::Status WriteClusterFile(const std::string& path,
                              const ClusterShape& shape) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<uint16_t> ports,
                           FreePorts(shape.nodes));
  std::ofstream file(path);
  file << "cluster_id = \"5d0d9e7e-4a37-4c58-9d3f-6f2a1f0a7b11\"\n"
       << "write_quorum = " << shape.write_quorum << "\n";
  if (!shape.hosts.empty()) {
    file << "fabric = \"verbs\"\ninsecure_without_key = true\n";
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    file << "[[member]]\nnode = " << i + 1 << "\naddress = \""
         << (shape.hosts.empty() ? "127.0.0.1" : shape.hosts.at(i)) << ":"
         << ports[i] << "\"\n";
  }
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
}

recovery::Format FormatFor(const ClusterShape& shape, int log) {
  recovery::Format format;
  format.region_bytes = shape.ring_bytes + kFixedPartBytes;
  format.log_name = BenchLogName(log);
  format.configuration.replica_count = static_cast<uint32_t>(shape.nodes);
  format.configuration.write_quorum = static_cast<uint32_t>(shape.write_quorum);
  EntropyRandom random;
  for (int node = 1; node <= shape.nodes; ++node) {
    format.configuration.members.push_back(
        {NodeId(static_cast<uint64_t>(node)), random.Next() | 1});
  }
  return format;
}

// The kernel may choose a port that is merely closed for another process. It
// skips one with a connection in TIME_WAIT, except for a process that names it
// and sets SO_REUSEADDR.
absl::StatusOr<uint16_t> SetPortAside() {
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket listener, RawSocket::Listen());
  ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, listener.Port());
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket client, RawSocket::Connect(port));
  // Declared last, so closed first: the end that waits is the port's.
  ALPHEUS_ASSIGN_OR_RETURN(const RawSocket accepted, listener.Accept());
  return port;
}

}  // namespace

std::string BenchLogName(int log) { return absl::StrCat("bench", log); }

absl::StatusOr<ScratchFolder> ScratchFolder::Make(const std::string& parent) {
  std::string path = absl::StrCat(parent, "/alpheus-bench-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(parent, ": no folder can be made there"));
  }
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  if (path_.empty()) return;
  std::error_code ignored;  // a leftover on a temporary file system
  std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::vector<uint16_t>> FreePorts(int count) {
  std::vector<uint16_t> ports;
  for (int i = 0; i < count; ++i) {
    ALPHEUS_ASSIGN_OR_RETURN(const uint16_t port, SetPortAside());
    ports.push_back(port);
  }
  return ports;
}

absl::StatusOr<ClusterFolder> ClusterFolder::Make(const ClusterShape& shape) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder,
                           ScratchFolder::Make(shape.parent));
  ClusterFolder made(std::move(folder));
  ALPHEUS_RETURN_IF_ERROR(made.Fill(shape));
  return made;
}

absl::Status ClusterFolder::Fill(const ClusterShape& shape) const {
  ALPHEUS_RETURN_IF_ERROR(WriteClusterFile(ClusterFile(path()), shape));
  for (int node = 1; node <= shape.nodes; ++node) {
    std::error_code ignored;  // without it, no replica can be made
    std::filesystem::create_directory(
        DirectoryOf(path(), static_cast<uint64_t>(node)), ignored);
  }
  for (int log = 0; log < shape.logs; ++log) {
    ALPHEUS_RETURN_IF_ERROR(MakeReplicas(shape, log));
  }
  return absl::OkStatus();
}

absl::Status ClusterFolder::MakeReplicas(const ClusterShape& shape,
                                         int log) const {
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(ClusterFile(path())));
  const recovery::Format format = FormatFor(shape, log);
  for (const Member& member : format.configuration.members) {
    const ReplicaIdentity identity{
        cluster.cluster_id,
        quorum::LogIdOf(cluster.cluster_id, BenchLogName(log)), member.node};
    ALPHEUS_RETURN_IF_ERROR(
        ReplicaFile::Create(ReplicaOf(path(), member.node.value, log), identity,
                            format)
            .status());
  }
  return absl::OkStatus();
}

std::string ClusterFolder::ClusterFile(const std::string& folder) {
  return absl::StrCat(folder, "/cluster.toml");
}

std::string ClusterFolder::DirectoryOf(const std::string& folder,
                                       uint64_t node) {
  return absl::StrCat(folder, "/node", node);
}

std::string ClusterFolder::ReplicaOf(const std::string& folder, uint64_t node,
                                     int log) {
  return absl::StrCat(DirectoryOf(folder, node), "/", BenchLogName(log),
                      ".alpheus");
}

}  // namespace alpheus::bench::replicated
