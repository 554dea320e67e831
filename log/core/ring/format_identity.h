// SPDX-License-Identifier: Apache-2.0
// format_identity: names the log of a new region, and the replica that it will
// be.
//
// Thread safety: a value.
#ifndef ALPHEUS_LOG_CORE_RING_FORMAT_IDENTITY_H_
#define ALPHEUS_LOG_CORE_RING_FORMAT_IDENTITY_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/format/superline.h"

namespace alpheus {

// Identities of a new log, drawn by the caller: the same on all replicas.
struct FormatIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
  Configuration configuration;
  // Incarnation of this replica; 0: the one in the configuration. With another
  // one the replica is blank: it will replace one that was lost.
  uint64_t incarnation = 0;
};

// Fresh identities for a log in local mode: node 0, N = W = 1.
inline FormatIdentity NewLocalIdentity(RandomSource& random) {
  FormatIdentity identity;
  identity.cluster_id = {random.Next(), random.Next()};
  identity.log_id = {random.Next(), random.Next()};
  identity.configuration.members = {{identity.node, random.Next()}};
  return identity;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_FORMAT_IDENTITY_H_
