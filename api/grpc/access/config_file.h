// SPDX-License-Identifier: Apache-2.0
// config_file: reads files of the service that an operator wrote.
//
// Idea: a file with a secret is read only if its owner alone may use it, as the
// cluster's key (quorum/members/cluster_key.h).
//
// Thread safety: pure, but for the file; may block.
#ifndef ALPHEUS_API_GRPC_ACCESS_CONFIG_FILE_H_
#define ALPHEUS_API_GRPC_ACCESS_CONFIG_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace alpheus::rpc {

// Largest file; no list of tokens or authorities is larger.
inline constexpr size_t kConfigFileBytesMax = size_t{4} << 20;

enum class ReadableBy {
  kOwner,   // alone: it has a secret
  kAnyone,  // it has none
};

// Returns the text of a file, which errors call `what` and its path. Errors:
// FailedPrecondition (no regular file; others than the owner may use a secret);
// InvalidArgument (too large); the system's for a file that can't be opened or
// read.
absl::StatusOr<std::string> ReadConfigFile(const std::string& path,
                                           absl::string_view what,
                                           ReadableBy readers);

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_ACCESS_CONFIG_FILE_H_
