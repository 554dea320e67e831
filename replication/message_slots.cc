// SPDX-License-Identifier: Apache-2.0
#include "replication/message_slots.h"

#include "log/base/status_macros.h"

namespace alpheus {

MessageSlots::MessageSlots(Fabric& fabric, size_t slots, size_t slot_bytes)
    : fabric_(fabric),
      slots_(slots),
      slot_bytes_(slot_bytes),
      bytes_(std::make_unique<std::byte[]>(slots * slot_bytes)) {}

absl::StatusOr<std::unique_ptr<MessageSlots>> MessageSlots::Make(
    Fabric& fabric, size_t slots, size_t slot_bytes) {
  std::unique_ptr<MessageSlots> made(
      new MessageSlots(fabric, slots, slot_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      made->key_, fabric.Register({made->bytes_.get(), slots * slot_bytes},
                                  RemoteAccess::kNone));
  return made;
}

MessageSlots::~MessageSlots() {
  // Not registered only if Make failed.
  if (key_ != RegionKey()) fabric_.Deregister(key_).IgnoreError();
}

}  // namespace alpheus
