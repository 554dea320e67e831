// SPDX-License-Identifier: Apache-2.0
// posted_receives: the receives of one end of a session, which are posted again
// when nobody waits for what they brought.
//
// Idea: a receive that brought something must be posted again, and that can
// wait: until the ack is on its way, until the call that waited for an ack has
// returned. So a few more are posted than the peer has credits, and as many may
// wait to be posted again.
//
// Invariants:
//   PR1. Whenever a call returns, as many are posted or have brought something
//        that was not told by Taken yet as the peer has credits: it finds one
//        for whatever it may send (P-R1).
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

namespace alpheus {

class PostedReceives {
 public:
  // Posts them all; the WorkId of each is its slot. `slot_bytes`: of what
  // comes, at most. More than credits only as the fabric has room for. `fabric`
  // must outlive it. Errors: of the fabric; ResourceExhausted (memory).
  static absl::StatusOr<std::unique_ptr<PostedReceives>> Make(
      Fabric& fabric, ConnectionId connection, uint32_t credits,
      size_t slot_bytes);

  // What a receive brought: its first bytes. Until Taken.
  std::span<const std::byte> BytesOf(const Completion& completion) const {
    return slots_->At(completion.work.value).bytes.first(completion.bytes);
  }
  // It has been read, and waits to be posted again. Errors: as PostAll.
  absl::Status Taken(WorkId work) {
    waiting_.push_back(work);
    return waiting_.size() > spare_ ? PostAll() : absl::OkStatus();
  }
  // Posts those that wait. Errors: of the fabric; the session is broken then.
  absl::Status PostAll();

 private:
  PostedReceives(Fabric& fabric, ConnectionId connection, size_t spare)
      : fabric_(fabric), connection_(connection), spare_(spare) {}

  Fabric& fabric_;
  const ConnectionId connection_;
  const size_t spare_;  // more than credits
  std::unique_ptr<MessageSlots> slots_;
  std::vector<WorkId> waiting_;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_WIRE_POSTED_RECEIVES_H_
