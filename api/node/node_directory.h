// SPDX-License-Identifier: Apache-2.0
// node_directory: the directory in which a node has its replicas: that one node
// has it, and that the replicas are its own.
//
// Idea: each replica has a lock of its own, which primaries take too. So that a
// second node on the same directory does not wait for locks for ever, a node
// locks the directory itself, as long as it runs. Whose a replica is its
// superline says; that is looked at without a lock, for messages only.
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

// Behind a log's name.
inline constexpr char kReplicaExtension[] = ".alpheus";

// Held until the descriptor is closed. A file system without such locks keeps
// nobody out. Errors: NotFound (no such directory), FailedPrecondition (a node
// that runs has it).
absl::StatusOr<FileDescriptor> LockNodeDirectory(const std::string& directory);

// Why the file is not the replica of `log_name` that `node` has in this
// cluster, in at most 44 bytes, as a rejection holds; empty if it is, or can't
// be read.
std::string WhyNotOwn(const std::string& path, Uuid cluster_id,
                      const std::string& log_name, NodeId node);

// OK unless a replica of another node lies there. Errors: FailedPrecondition.
absl::Status CheckOwnReplicas(const std::string& directory, Uuid cluster_id,
                              NodeId node);

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_DIRECTORY_H_
