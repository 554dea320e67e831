// SPDX-License-Identifier: Apache-2.0
// device_news: the news of an RDMA adapter, for every fabric on it.
//
// Idea: rdma_cm opens each adapter once in a process. So an adapter's own news
// (its port is down, it was taken away, a queue pair is broken) are one queue
// for all fabrics on it. A fabric that looks takes everything, and notes it for
// each of them.
//
// Invariants:
//   VA1. Each fabric that has a DeviceNews hears of each failure once,
//        whichever fabric took the event (FB9).
//   VA2. An event is acknowledged when it has been taken: the end of a queue
//        pair waits for that.
// Thread safety: concurrently.
// References: ibv_get_async_event(3); fabric.h FB9.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_DEVICE_NEWS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_DEVICE_NEWS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <set>

#include "absl/status/statusor.h"
#include "replication/fabric/verbs/wake_up.h"

namespace alpheus::fabric::verbs {

// Failures since the last look.
struct DeviceFailures {
  const char* all = nullptr;  // why all connections are broken; nullptr: not
  uint8_t port = 0;           // the port of these; 0: any
  std::set<uint32_t> queue_pairs;  // numbers of single broken pairs
};

class DeviceNews {
 public:
  // The context is rdma_cm's and lives as long as the process. `wake` must
  // outlive the object; it is called when another fabric took an event. Errors:
  // Unavailable.
  static absl::StatusOr<std::unique_ptr<DeviceNews>> Of(ibv_context* context,
                                                        const WakeUp* wake);
  ~DeviceNews();
  DeviceNews(const DeviceNews&) = delete;
  DeviceNews& operator=(const DeviceNews&) = delete;

  // A descriptor that is readable when there is news, for this or another
  // fabric.
  int descriptor() const { return context_->async_fd; }
  DeviceFailures Take();
  // Returns true if the adapter is gone: nothing of it works or writes any
  // more.
  bool IsGone();

 private:
  DeviceNews(ibv_context* context, const WakeUp* wake);

  ibv_context* const context_;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_DEVICE_NEWS_H_
