// SPDX-License-Identifier: Apache-2.0
// remote_adapter: the adapter of a client of memory, and of a process that
// offers it, without a cluster's file.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_REMOTE_REMOTE_ADAPTER_H_
#define ALPHEUS_API_REMOTE_REMOTE_ADAPTER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "api/wiring/adapter.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "quorum/members/configuration.h"
#include "quorum/members/uuid_text.h"
#include "replication/fabric/fabric.h"

namespace alpheus::remote {

// Errors: InvalidArgument.
inline absl::StatusOr<Uuid> ParseClusterId(const std::string& text) {
  const std::optional<Uuid> id = quorum::ParseUuid(text);
  if (id.has_value() && !id->is_zero()) return *id;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text,
                   "\" is no id of a cluster. It has 32 "
                   "hexadecimal digits, as cluster_id of the cluster's file"));
}

// Opens an adapter over TCP. `random` must outlive it. Errors: as OpenAdapter.
inline absl::StatusOr<std::unique_ptr<fabric::Fabric>> OpenRemoteAdapter(
    Uuid cluster_id, RandomSource& random) {
  quorum::ClusterConfiguration cluster;
  cluster.cluster_id = cluster_id;
  return OpenAdapter(cluster, NodeId(0), random);
}

}  // namespace alpheus::remote

#endif  // ALPHEUS_API_REMOTE_REMOTE_ADAPTER_H_
