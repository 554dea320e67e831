// SPDX-License-Identifier: Apache-2.0
// format_identity: whose replica of which log a new region is to be.
//
// Thread safety: a value.
#ifndef ALPHEUS_LOG_CORE_RING_FORMAT_IDENTITY_H_
#define ALPHEUS_LOG_CORE_RING_FORMAT_IDENTITY_H_

#include <cstdint>

#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/format/superline.h"

namespace alpheus {

// Identities are the caller's: one log has the same on all its replicas.
struct FormatIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
  Configuration configuration;
  // Of this replica; 0: the one with which the configuration names `node`. With
  // another one the replica is blank: it is to replace one that was lost.
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
