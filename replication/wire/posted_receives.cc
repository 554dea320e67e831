// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/posted_receives.h"

#include <algorithm>

#include "log/base/status_macros.h"

namespace alpheus::replication {
namespace {

// Few are enough: each takes a slot, and most sessions have one that waits.
constexpr uint32_t kSpare = 4;

}  // namespace

absl::StatusOr<std::unique_ptr<PostedReceives>> PostedReceives::Make(
    fabric::Fabric& fabric, fabric::ConnectionId connection, uint32_t credits,
    size_t slot_bytes) {
  const uint32_t room = std::max(fabric.limits().receives_max, credits);
  const uint32_t spare = std::min(kSpare, room - credits);
  std::unique_ptr<PostedReceives> made(
      new PostedReceives(fabric, connection, spare));
  const uint32_t count = credits + spare;
  ALPHEUS_ASSIGN_OR_RETURN(made->slots_,
                           MessageSlots::Make(fabric, count, slot_bytes));
  for (uint32_t slot = 0; slot < count; ++slot) {
    made->waiting_.emplace_back(slot);
  }
  ALPHEUS_RETURN_IF_ERROR(made->PostAll());
  return made;
}

absl::Status PostedReceives::PostAll() {
  for (const fabric::WorkId work : waiting_) {
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostReceive(connection_, work, slots_->At(work.value)));
  }
  waiting_.clear();
  return absl::OkStatus();
}

}  // namespace alpheus::replication
