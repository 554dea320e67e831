// SPDX-License-Identifier: Apache-2.0
// posted_receives: the receives of one end of a session, posted again while no
// caller waits.
//
// Idea: a receive that brought something must be posted again, but that can
// wait: until the ack is sent, or until a call that waited for an ack has
// returned. So a few more receives are posted than the peer has credits, and as
// many may wait to be posted again.
//
// Invariants:
//   PR1. Whenever a call returns, the peer finds a receive for anything that it
//        may send (P-R1). At least as many receives as it has credits are
//        posted, or hold something that the caller has not yet given to Taken.
// Thread safety: one thread.
// References: protocol P-A3.3, P-B6 P-R1.
#ifndef ALPHEUS_REPLICATION_WIRE_POSTED_RECEIVES_H_
#define ALPHEUS_REPLICATION_WIRE_POSTED_RECEIVES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"
#include "replication/wire/message_slots.h"

namespace alpheus::replication {

class PostedReceives {
 public:
  // Posts all receives; the WorkId of each is its slot. `slot_bytes` is the
  // largest message. There are more than `credits` only if the fabric has room.
  // `fabric` must outlive the object. Errors: the fabric's; ResourceExhausted
  // (memory).
  static absl::StatusOr<std::unique_ptr<PostedReceives>> Make(
      fabric::Fabric& fabric, fabric::ConnectionId connection, uint32_t credits,
      size_t slot_bytes);

  // Returns the bytes that a receive brought; valid until Taken.
  std::span<const std::byte> BytesOf(
      const fabric::Completion& completion) const {
    return slots_->At(completion.work.value).bytes.first(completion.bytes);
  }
  // Marks a receive as read, to be posted again. Errors: as PostAll.
  absl::Status Taken(fabric::WorkId work) {
    waiting_.push_back(work);
    return waiting_.size() > spare_ ? PostAll() : absl::OkStatus();
  }
  // Posts the receives that wait. Errors: the fabric's; the session is then
  // broken.
  absl::Status PostAll();

 private:
  PostedReceives(fabric::Fabric& fabric, fabric::ConnectionId connection,
                 size_t spare)
      : fabric_(fabric), connection_(connection), spare_(spare) {}

  fabric::Fabric& fabric_;
  const fabric::ConnectionId connection_;
  const size_t spare_;  // number of receives beyond the credits
  std::unique_ptr<MessageSlots> slots_;
  std::vector<fabric::WorkId> waiting_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_POSTED_RECEIVES_H_
