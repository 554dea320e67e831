// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/store_candidate.h"

#include <utility>

#include "bench/harness/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {

StoreCandidate::StoreCandidate(Store& store, std::shared_ptr<CommitLog> log,
                               const KeysOfWorkers& keys)
    : store_(store),
      log_(std::move(log)),
      keys_(keys),
      positions_(keys.size()) {}

std::string StoreCandidate::name() const {
  return log_ == nullptr ? "unlogged" : log_->name();
}

uint64_t StoreCandidate::NextKey(int worker) {
  const std::vector<uint64_t>& keys = keys_[worker];
  return keys[positions_[worker].next++ % keys.size()];
}

absl::StatusOr<BatchResult> StoreCandidate::Run(int worker, uint64_t ops) {
  BatchResult result;
  const int64_t start = NowNanos();
  for (uint64_t i = 0; i < ops; ++i) {
    if (log_ == nullptr) {
      store_.UpdateUnlogged(NextKey(worker));
    } else {
      ALPHEUS_RETURN_IF_ERROR(Update(worker, [](uint64_t) {}).status());
    }
  }
  result.append_ns = NowNanos() - start;
  return result;
}

}  // namespace alpheus::bench::ordered_store
