// SPDX-License-Identifier: Apache-2.0
// adapter: which RDMA adapter it is, what it can, and what it says of itself.
//
// Idea: rdma_cm opens each adapter once in a process, so that what an adapter
// tells without being asked (its port is down, it has been taken away, a queue
// pair is broken) is one queue for all fabrics on it. Whoever looks takes all
// that is there, and notes it for each of them.
//
// Invariants:
//   VA1. Each fabric that has a DeviceNews hears of each failure once, whoever
//        took the event (FB9).
//   VA2. An event is acknowledged when it has been taken: the end of a queue
//        pair waits for that.
// Thread safety: DeviceNews concurrently; the rest values.
// References: ibv_get_async_event(3), ibv_query_port(3); fabric.h FB9.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/native_operations.h"
#include "replication/fabric/verbs/wake_up.h"

namespace alpheus::verbs {

struct Adapter {
  ibv_context* context = nullptr;
  std::string device;
  ibv_device_attr attributes = {};
  uint32_t message_bytes_max = 0;  // of the port that takes least
  bool pages_on_demand = false;
  NativeAbilities native;
};

// An empty name: the first one. Errors: NotFound (which there are),
// Unavailable.
absl::StatusOr<Adapter> FindAdapter(const std::string& name);

// `wanted`, where the adapter has less of it lowered to that.
Fabric::Limits LowerTo(const Adapter& adapter, Fabric::Limits wanted);

// What has failed since the last look.
struct DeviceFailures {
  const char* all = nullptr;  // why all connections are broken, if they are
  uint8_t port = 0;           // all on this port; 0: on any
  std::set<uint32_t> queue_pairs;  // numbers of those that are, by themselves
};

class DeviceNews {
 public:
  // The context is rdma_cm's and lives as long as the process. `wake`, which
  // must outlive it, is told when another one took an event. Errors:
  // Unavailable.
  static absl::StatusOr<std::unique_ptr<DeviceNews>> Of(ibv_context* context,
                                                        const WakeUp* wake);
  ~DeviceNews();
  DeviceNews(const DeviceNews&) = delete;
  DeviceNews& operator=(const DeviceNews&) = delete;

  // Can be read when there is something, for this fabric or another one.
  int descriptor() const { return context_->async_fd; }
  DeviceFailures Take();
  // Nothing of it works any more, and nothing of it writes.
  bool IsGone();

 private:
  DeviceNews(ibv_context* context, const WakeUp* wake);

  ibv_context* const context_;
};

}  // namespace alpheus::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_ADAPTER_H_
