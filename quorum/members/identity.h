// SPDX-License-Identifier: Apache-2.0
// identity: name and password by which the processes of a cluster show
// themselves to ZooKeeper.
//
// Idea: one line, `name:password`, in a file that only its owner reads, like
// the cluster's key. ZooKeeper gets it as it is ("digest"), over a connection
// that is not encrypted: so it is another secret than the key.
//
// Thread safety: pure, except for LoadIdentity, which reads a file.
// References: docs/design/zookeeper.md#rights.
#ifndef ALPHEUS_QUORUM_MEMBERS_IDENTITY_H_
#define ALPHEUS_QUORUM_MEMBERS_IDENTITY_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace alpheus::quorum {

inline constexpr size_t kIdentityBytesMax = 256;

// Parses `name:password`, white space around it aside. Errors call the file
// `file`, and never show the text. Errors: InvalidArgument (anything else).
absl::StatusOr<std::string> ParseIdentity(std::string_view text,
                                          std::string_view file);

// Reads such a file. Errors: as ParseIdentity and, for a secret, ReadConfigFile
// (log/pmem/config_file.h).
absl::StatusOr<std::string> LoadIdentity(const std::string& path);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_IDENTITY_H_
