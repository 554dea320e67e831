// SPDX-License-Identifier: Apache-2.0
// log_group: the group of a log, by which nodes spread their logs over threads.
//
// Idea: a node has a thread for some of the groups, and each of its threads has
// an adapter. An adapter that connects to a node says for which group, so that
// the thread that has the log gets the connection (tcp/socket_exchange.h). All
// processes of a cluster compute the same group of a log, for ever: it is on
// the wire.
//
// Thread safety: pure functions.
// References: docs/design/fabric.md#adapters-that-share-an-address.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_LOG_GROUP_H_
#define ALPHEUS_RECOVERY_PROTOCOL_LOG_GROUP_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "log/base/ids.h"

namespace alpheus::recovery {

inline constexpr uint32_t kLogGroups = 256;

// Returns the group, from 0 to kLogGroups - 1.
uint32_t GroupOf(Uuid log_id);

// Returns the group of the log that a Hello or a ClientHello names, the private
// data of a request to connect; nothing: it is neither of this version, which
// any thread may reject.
std::optional<uint32_t> GroupOfHello(std::string_view private_data);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_LOG_GROUP_H_
