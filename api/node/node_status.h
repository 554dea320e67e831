// SPDX-License-Identifier: Apache-2.0
// node_status: what a node keeps and whom it serves, at one moment.
//
// Thread safety: a value.
#ifndef ALPHEUS_API_NODE_NODE_STATUS_H_
#define ALPHEUS_API_NODE_NODE_STATUS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/base/ids.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/reject_counters.h"

namespace alpheus {

struct NodeStatus {
  // A file in the directory of replicas.
  struct Replica {
    std::string log;
    // False: a primary of this machine has it, or it can't be served.
    bool is_served = false;
    // The two below: of a replica that is served.
    recovery::Followed followed = {};
    recovery::Scrubbed scrubbed = {};
  };

  std::vector<Replica> replicas;  // by their logs' names
  size_t connections = 0;         // of primaries, nodes and readers
  recovery::RejectCounts rejected{};
  // When the certificate for other nodes expires, in seconds since 1970;
  // nothing: the cluster does not encrypt.
  std::optional<int64_t> certificate_end_s = {};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_STATUS_H_
