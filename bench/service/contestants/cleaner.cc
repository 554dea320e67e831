// SPDX-License-Identifier: Apache-2.0
#include "bench/service/contestants/cleaner.h"

namespace alpheus::bench::service {
namespace {

// Bytes of a record beside its payload: its header, and those of the service.
constexpr uint64_t kRecordBytes = 128;

}  // namespace

Cleaner::Cleaner(const ServiceCluster& cluster, uint64_t payload_bytes)
    : calls_(cluster.addresses().front(), cluster.log()),
      each_(cluster.ring_bytes() / 8 / (payload_bytes + kRecordBytes)) {
  thread_ = std::thread([this] { Run(); });
}

Cleaner::~Cleaner() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

// A log that can't be cleaned takes no more records, and its clients say so.
void Cleaner::Run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] {
        const uint64_t next = next_.load();
        return is_over_ || (next != 0 && last_.load() >= next);
      });
    }
    const uint64_t last = last_.load();
    if (last > 0) calls_.Cleanup(last).IgnoreError();
    const std::lock_guard lock(mutex_);
    next_.store(last + each_);
    if (is_over_) return;
  }
}

}  // namespace alpheus::bench::service
