// SPDX-License-Identifier: Apache-2.0
// persist_requester: runs the requester's steps of a plan on one connection.
//
// Idea: who has updates to persist elsewhere says where their bytes are and
// hands over what comes back; which operations are posted, and what has to come
// back before an update is persisted, is the plan's. Updates follow each other
// without waiting.
//
// Invariants:
//   PQ1. persisted() never goes back and never passes posted(); it counts an
//        update only when the plan's last step is done for it and for all
//        before it, or the responder has acknowledged it: behind its own flush
//        and fence, which is enough on every platform.
//   PQ2. Nothing that tells the responder of an update is posted before its
//        bytes (FB1, FB2 of fabric.h keep the order).
// Thread safety: one thread. No call is virtual but those of the fabric.
// References: method.h; remote persistence taxonomy §3.2.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_REQUESTER_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_REQUESTER_H_

#include <cstdint>
#include <deque>
#include <span>

#include "absl/status/status.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/method.h"

namespace alpheus {

class PersistRequester {
 public:
  // Bytes here and their place there.
  struct Range {
    LocalBytes from;
    RemoteAddress to;
  };

  // Of all that it posts, and of nothing else on the connection: its
  // completions are told by it, whatever the plan's operations are.
  static constexpr WorkId kWork{0xffff'ffff};

  PersistRequester(const Plan& plan, Fabric& fabric, ConnectionId connection);

  // Operations that an update of so many bytes in so many ranges takes at most.
  uint64_t PostsMax(uint64_t bytes, uint64_t ranges) const {
    const uint64_t more =
        bytes < one_piece_bytes_ ? 0 : bytes / PieceBytesMax(bytes);
    return more + ranges + (flushes_ ? 1 : 0);
  }
  // Posts an update; `immediate` tells the responder where it is. Requires: not
  // empty, nor is a range; the bytes stay as they are until it is persisted.
  // Errors: the fabric's; part of it may have been posted.
  absl::Status Post(std::span<const Range> ranges, uint32_t immediate);

  // A completion with kWork. Requires: its status is OK.
  void Take(const Completion& completion);
  // The responder acknowledged the oldest update that it had not.
  // Requires: there is one.
  void TakeAck();

  // Updates since the start.
  uint64_t posted() const { return posted_; }
  uint64_t persisted() const { return persisted_; }
  // Operations that have not completed.
  uint64_t posts_under_way() const { return posts_under_way_; }

 private:
  // Largest piece of an update of so many bytes.
  uint64_t PieceBytesMax(uint64_t bytes) const;
  absl::Status WriteImmediate(std::span<const Range> ranges,
                              uint32_t immediate);
  absl::Status Flush(const Range& last);
  void CountCompleted();
  absl::Status WriteAllButTheLast(std::span<const Range> ranges,
                                  uint64_t piece_bytes);
  absl::Status Write(const Range& range, uint64_t piece_bytes);

  const Plan plan_;
  Fabric& fabric_;
  const ConnectionId connection_;
  const Fabric::Limits limits_;
  // Updates of up to so many bytes go in one piece.
  const uint64_t one_piece_bytes_;
  const bool flushes_;
  // The last step is a completion, not an ack.
  const bool ends_by_completion_;
  // Then: of updates, the number of the last operation, oldest first.
  std::deque<uint64_t> ends_;
  uint64_t operations_ = 0;
  uint64_t completed_ = 0;  // updates
  uint64_t acked_ = 0;      // updates
  uint64_t posted_ = 0;
  uint64_t persisted_ = 0;
  uint64_t posts_under_way_ = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_REQUESTER_H_
