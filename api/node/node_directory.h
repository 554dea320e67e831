// SPDX-License-Identifier: Apache-2.0
// node_directory: checks that one node has the directory of its replicas, and
// that the replicas are its own.
//
// Idea: each replica has a lock of its own, which primaries take too. A second
// node on the same directory would wait for these locks for ever. So a node
// locks the directory itself while it runs. The superline of a replica names
// its node; it is read without a lock, for messages only.
//
// Thread safety: functions; the lock is the file descriptor's.
// References: flock(2); protocol P-H17.
#ifndef ALPHEUS_API_NODE_NODE_DIRECTORY_H_
#define ALPHEUS_API_NODE_NODE_DIRECTORY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/pmem/file_descriptor.h"
#include "quorum/members/configuration.h"

namespace alpheus {

// Extension after a log's name.
inline constexpr char kReplicaExtension[] = ".alpheus";

// Locks the directory until the descriptor is closed. A file system without
// such locks excludes nobody. Errors: NotFound (no such directory),
// FailedPrecondition (a running node has it).
absl::StatusOr<FileDescriptor> LockNodeDirectory(const std::string& directory);

// Returns why the file is not the replica of `log_name` of `node` in this
// cluster, in at most 44 bytes, as a rejection holds; empty if it is, or can't
// be read.
std::string WhyNotOwn(const std::string& path, Uuid cluster_id,
                      const std::string& log_name, NodeId node);

// Fails if a replica of another node lies there. Errors: FailedPrecondition.
absl::Status CheckOwnReplicas(const std::string& directory, Uuid cluster_id,
                              NodeId node);

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_DIRECTORY_H_
