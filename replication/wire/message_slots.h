// SPDX-License-Identifier: Apache-2.0
// message_slots: registered memory for small messages, in slots of one size.
//
// Thread safety: one thread.
#ifndef ALPHEUS_REPLICATION_WIRE_MESSAGE_SLOTS_H_
#define ALPHEUS_REPLICATION_WIRE_MESSAGE_SLOTS_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"

namespace alpheus::replication {

class MessageSlots {
 public:
  // Makes slots that peers can't access. The fabric must outlive them. Errors:
  // as Fabric::Register; ResourceExhausted (memory).
  static absl::StatusOr<std::unique_ptr<MessageSlots>> Make(
      fabric::Fabric& fabric, size_t slots, size_t slot_bytes);
  ~MessageSlots();
  MessageSlots(const MessageSlots&) = delete;
  MessageSlots& operator=(const MessageSlots&) = delete;

  size_t size() const { return slots_; }
  // Requires: slot < size().
  fabric::LocalBytes At(size_t slot) const {
    return {key_, {bytes_.get() + slot * slot_bytes_, slot_bytes_}};
  }

 private:
  MessageSlots(fabric::Fabric& fabric, size_t slots, size_t slot_bytes);

  fabric::Fabric& fabric_;
  const size_t slots_;
  const size_t slot_bytes_;
  const std::unique_ptr<std::byte[]> bytes_;
  fabric::RegionKey key_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_MESSAGE_SLOTS_H_
