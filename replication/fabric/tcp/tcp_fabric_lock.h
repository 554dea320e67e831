// SPDX-License-Identifier: Apache-2.0
// tcp_fabric_lock: the way the members of TcpFabric take its lock; for its own
// sources only.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_TCP_FABRIC_LOCK_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_TCP_FABRIC_LOCK_H_

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "replication/fabric/tcp/tcp_fabric.h"

namespace alpheus::fabric::tcp {

// Counts as a thread for which a stand-in steps back (TF2).
class ABSL_SCOPED_LOCKABLE TcpFabric::Lock {
 public:
  explicit Lock(const TcpFabric& fabric)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(fabric.mutex_)
      : fabric_(fabric) {
    // Order: a hint; the mutex orders everything else.
    fabric_.wanting_.fetch_add(1, std::memory_order_relaxed);
    fabric_.mutex_.Lock();
    fabric_.wanting_.fetch_sub(1, std::memory_order_relaxed);
  }
  ~Lock() ABSL_UNLOCK_FUNCTION() { fabric_.mutex_.Unlock(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  const TcpFabric& fabric_;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_TCP_FABRIC_LOCK_H_
