// SPDX-License-Identifier: Apache-2.0
// log_id: the identity of a cluster's log, from its name.
//
// Idea: operators name logs; regions and messages carry identities. The
// identity is computed from cluster and name, so that all nodes and clients
// find the same one without a registry. A log that was removed and created
// again under its name has the same identity again. Its replicas have new
// incarnations, and those of its former life count as blank (P-H16).
//
// Thread safety: pure functions.
// References: protocol P-A2, P-H16, P-H17.
#ifndef ALPHEUS_QUORUM_MEMBERS_LOG_ID_H_
#define ALPHEUS_QUORUM_MEMBERS_LOG_ID_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "log/base/ids.h"

namespace alpheus::quorum {

inline constexpr size_t kLogNameBytesMax = 64;

// Checks a name: 1 to kLogNameBytesMax letters, digits, '.', '_' and '-', the
// first a letter or a digit. It is a part of file names, too. Errors:
// InvalidArgument.
absl::Status CheckLogName(std::string_view name);

// Returns the identity; never zero. Requires: CheckLogName(name) is OK.
Uuid LogIdOf(Uuid cluster_id, std::string_view name);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_LOG_ID_H_
