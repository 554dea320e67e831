// SPDX-License-Identifier: Apache-2.0
// cleaner: cleans the log of a cluster while a load is on it.
//
// Thread safety: Note by any thread; the rest by one.
#ifndef ALPHEUS_BENCH_SERVICE_CONTESTANTS_CLEANER_H_
#define ALPHEUS_BENCH_SERVICE_CONTESTANTS_CLEANER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "bench/service/cluster/service_cluster.h"
#include "bench/service/grpc/service_calls.h"

namespace alpheus::bench::service {

class Cleaner {
 public:
  // Cleans each eighth of the ring that records of that size have filled.
  Cleaner(const ServiceCluster& cluster, uint64_t payload_bytes);
  // Cleans up to the last record that it was told of.
  ~Cleaner();
  Cleaner(const Cleaner&) = delete;
  Cleaner& operator=(const Cleaner&) = delete;

  // A record with this LSN is durable.
  void Note(uint64_t lsn) {
    uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < lsn && !last_.compare_exchange_weak(last, lsn)) {
    }
    uint64_t next = next_.load(std::memory_order_relaxed);
    if (next == 0) next_.compare_exchange_strong(next, lsn + each_);
    if (next == 0 || lsn < next) return;
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

 private:
  void Run();

  const ServiceCalls calls_;
  const uint64_t each_;  // records
  std::atomic<uint64_t> last_{0};
  // It cleans again at this LSN; 0: it was told of none yet. So records of
  // readers that have just begun stay for a while.
  std::atomic<uint64_t> next_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_CONTESTANTS_CLEANER_H_
