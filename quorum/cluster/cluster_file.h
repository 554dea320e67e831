// SPDX-License-Identifier: Apache-2.0
// cluster_file: static membership, read from a TOML file that an operator
// wrote.
//
// Idea: what a typing error could change is refused, not guessed at: a key that
// is not known, a type that is not expected, a number out of range. Every error
// names file, line and column. tools/samples/cluster.toml has every key with
// its reason and its default.
//
//   cluster_id = "9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a"
//   write_quorum = 2
//
//   [[member]]
//   node = 1
//   address = "10.0.0.1:7400"
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

namespace alpheus {

// A file that is larger is not one that describes 16 members.
inline constexpr size_t kClusterFileBytesMax = size_t{256} * 1024;

// `name` stands in errors for the file.
// Errors: InvalidArgument (not TOML; a key that is unknown, missing or of
// another type; a value that is refused; what MakeClusterConfiguration
// refuses).
absl::StatusOr<ClusterConfiguration> ParseClusterFile(std::string_view text,
                                                      std::string_view name);

// With the key that the file names, relative to where it lies itself.
// Errors: as ParseClusterFile and LoadClusterKey; InvalidArgument (too large);
// FailedPrecondition (no key, a member that other machines reach, and not
// insecure_without_key); NotFound, Unavailable (a host that nobody knows); what
// the system says of a file that can't be opened or read.
// Members' hosts are numbers then, as `look_up` gives them.
absl::StatusOr<ClusterConfiguration> LoadClusterFile(
    const std::string& path, const HostLookup& look_up = LookUpHost);

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_CLUSTER_CLUSTER_FILE_H_
