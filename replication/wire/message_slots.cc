// SPDX-License-Identifier: Apache-2.0
#include "replication/wire/message_slots.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::replication {

MessageSlots::MessageSlots(fabric::Fabric& fabric, size_t slots,
                           size_t slot_bytes)
    : fabric_(fabric),
      slots_(slots),
      slot_bytes_(slot_bytes),
      bytes_(new(std::nothrow) std::byte[slots * slot_bytes]) {}

absl::StatusOr<std::unique_ptr<MessageSlots>> MessageSlots::Make(
    fabric::Fabric& fabric, size_t slots, size_t slot_bytes) {
  std::unique_ptr<MessageSlots> made(
      new MessageSlots(fabric, slots, slot_bytes));
  if (made->bytes_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(slots, " slots of ", slot_bytes,
                     " bytes for messages: this host has not that much "
                     "memory. Give the process more"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      made->key_, fabric.Register({made->bytes_.get(), slots * slot_bytes},
                                  fabric::RemoteAccess::kNone));
  return made;
}

MessageSlots::~MessageSlots() {
  // The key is empty only if Make failed.
  if (key_ != fabric::RegionKey()) fabric_.Deregister(key_).IgnoreError();
}

}  // namespace alpheus::replication
