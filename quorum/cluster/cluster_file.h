// SPDX-License-Identifier: Apache-2.0
// cluster_file: reads a cluster's configuration from a TOML file that an
// operator wrote.
//
// Idea: a typing error is refused, not guessed at: an unknown key, an
// unexpected type, a number out of range. Every error names file, line and
// column. tools/samples/cluster.toml has every key with its reason and its
// default.
//
//   cluster_id = "9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a"
//   write_quorum = 2
//
//   [[member]]
//   node = 1
//   address = "10.0.0.1:7400"
//
// With membership = "zookeeper" a table [zookeeper] says where that is.
//
// Thread safety: pure functions; LoadClusterFile reads a file and asks for
// hosts, which may block.
#ifndef ALPHEUS_QUORUM_CLUSTER_CLUSTER_FILE_H_
#define ALPHEUS_QUORUM_CLUSTER_CLUSTER_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "quorum/cluster/host_numbers.h"
#include "quorum/members/configuration.h"

namespace alpheus::quorum {

// Largest file; no description of 16 members is larger.
inline constexpr size_t kClusterFileBytesMax = size_t{256} * 1024;

// Parses a cluster file; errors call it `name`. Errors: InvalidArgument (not
// TOML; a key that is unknown, missing or of another type; a refused value;
// anything that MakeClusterConfiguration refuses).
absl::StatusOr<ClusterConfiguration> ParseClusterFile(std::string_view text,
                                                      std::string_view name);

// Returns the text of a cluster file. Errors: as ReadConfigFile
// (log/pmem/config_file.h).
absl::StatusOr<std::string> ReadClusterText(const std::string& path);

// Reads a cluster file, and the files of key and identity that it names,
// relative to its own place. Hosts become numbers, as `look_up` gives them. A
// server of ZooKeeper whose name leads nowhere is left out
// (ZookeeperService::warning). Errors: as ReadClusterText, ParseClusterFile,
// LoadClusterKey and LoadIdentity;
// FailedPrecondition (no key, a member that other machines reach, and not
// insecure_without_key; the same of the identity and a server, or one that was
// left out); NotFound, Unavailable (an unknown host of a member).
absl::StatusOr<ClusterConfiguration> LoadClusterFile(
    const std::string& path, const HostLookup& look_up = LookUpHost);
// Does the same with the text of a file that is not there: `path` is where it
// would be.
absl::StatusOr<ClusterConfiguration> LoadClusterText(
    std::string_view text, const std::string& path,
    const HostLookup& look_up = LookUpHost);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_CLUSTER_CLUSTER_FILE_H_
