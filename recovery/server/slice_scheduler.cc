// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/slice_scheduler.h"

#include "absl/status/status.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {

PeerConnection* SliceScheduler::Next() {
  PeerConnection* const last = connections_.Find(last_);
  if (last != nullptr && last->is_at_work()) return last;
  PeerConnection* next = nullptr;
  for (auto& [id, connection] : connections_.all()) {
    if (!connection.is_at_work()) continue;
    if (next == nullptr) next = &connection;
    if (id > last_) {
      next = &connection;
      break;
    }
  }
  if (next != nullptr) last_ = next->id;
  return next;
}

absl::StatusOr<bool> SliceScheduler::Run(PeerConnection& connection) const {
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_over,
                           connection.log->Continue(slice_bytes_));
  if (is_over && connection.log->medium_failed()) {
    return absl::UnavailableError("the replica's medium failed meanwhile");
  }
  return is_over;
}

}  // namespace alpheus::recovery
