// SPDX-License-Identifier: Apache-2.0
// adapter: an RDMA adapter and its abilities.
//
// Thread safety: values.
// References: ibv_query_device(3), ibv_query_port(3).
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/native_operations.h"

namespace alpheus::fabric::verbs {

struct Adapter {
  ibv_context* context = nullptr;
  std::string device;
  ibv_device_attr attributes = {};
  uint32_t message_bytes_max = 0;  // of the port with the lowest limit
  bool pages_on_demand = false;
  NativeAbilities native;
};

// Finds an adapter; an empty name: the first one. Errors: NotFound (names those
// that there are), Unavailable.
absl::StatusOr<Adapter> FindAdapter(const std::string& name);

// Returns `wanted`, lowered where the adapter has less.
Fabric::Limits LowerTo(const Adapter& adapter, Fabric::Limits wanted);

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_H_
