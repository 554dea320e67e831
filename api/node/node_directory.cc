// SPDX-License-Identifier: Apache-2.0
#include "api/node/node_directory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "log/core/ring/region_state.h"
#include "log/pmem/region.h"
#include "quorum/members/log_id.h"

namespace alpheus {

absl::StatusOr<FileDescriptor> LockNodeDirectory(const std::string& directory) {
  FileDescriptor fd(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) {
    return absl::NotFoundError(
        absl::StrCat(directory, ": ", std::strerror(errno),
                     "; the directory of the replicas must exist"));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return fd;
  return absl::FailedPreconditionError(absl::StrCat(
      directory,
      ": another alpheusd runs with this directory of replicas. One node has "
      "one directory: end that one, or give this one a --directory of its "
      "own"));
}

std::string WhyNotOwn(const std::string& path, Uuid cluster_id,
                      const std::string& log_name, NodeId node) {
  const absl::StatusOr<Region> region = Region::OpenForReading(path);
  if (!region.ok()) return "";
  const auto state = ReadRegionState(region->bytes(), path);
  if (!state.ok()) return "";
  const Superline& superline = state->superline;
  if (superline.cluster_id != cluster_id) {
    return "its file is of another cluster";
  }
  if (superline.log_id != quorum::LogIdOf(cluster_id, log_name)) {
    return "its file is of another log";
  }
  if (superline.node == node) return "";
  return absl::StrCat("its file is the replica of node ", superline.node.value);
}

absl::Status CheckOwnReplicas(const std::string& directory, Uuid cluster_id,
                              NodeId node) {
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, error)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != kReplicaExtension) continue;
    const std::string why =
        WhyNotOwn(path.string(), cluster_id, path.stem().string(), node);
    if (why.empty()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        path.string(), ": ", why, ", and this is node ", node.value,
        ". Give --directory as this node had it, or put the file back"));
  }
  return absl::OkStatus();
}

}  // namespace alpheus
