// SPDX-License-Identifier: Apache-2.0
// persist_requester: runs the requester's steps of a plan on one connection.
//
// Idea: the caller says where the bytes of an update are, and hands over
// completions and acks. The plan decides which operations are posted, and what
// must come back before an update is persisted. Updates follow each other
// without waiting. For a log's records an update is a batch
// (primary_session.h).
//
// Invariants:
//   PQ1. persisted() never goes back and never passes posted(). It counts an
//        update only in two cases: the plan's last step is done for it and all
//        before it; or the responder acknowledged it. The responder does so
//        after its own flush and fence, which is enough on every platform.
//   PQ2. Nothing that tells the responder of an update is posted before its
//        bytes (FB1, FB2 of fabric.h keep the order).
// Thread safety: one thread. Only the fabric's calls are virtual.
// May block: Post, for the fabric's lock only (fabric.h).
// References: method.h; remote persistence taxonomy §3.2.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_REQUESTER_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_REQUESTER_H_

#include <cstdint>
#include <deque>
#include <span>

#include "absl/status/status.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/method.h"

namespace alpheus::replication {

class PersistRequester {
 public:
  // Bytes here and their place at the responder.
  struct Range {
    fabric::LocalBytes from;
    fabric::RemoteAddress to;
  };

  // Work id of all its posts, and of nothing else on the connection:
  // completions are recognised by it, whatever operations the plan has.
  static constexpr fabric::WorkId kWork{0xffff'ffff};

  PersistRequester(const Plan& plan, fabric::Fabric& fabric,
                   fabric::ConnectionId connection);

  // Returns the most operations of an update of `bytes` in `ranges`.
  uint64_t PostsMax(uint64_t bytes, uint64_t ranges) const {
    const uint64_t more =
        bytes < one_piece_bytes_ ? 0 : bytes / PieceBytesMax(bytes);
    return more + ranges + (flushes_ ? 1 : 0);
  }
  // Posts an update; `immediate` tells the responder where it is. Requires:
  // neither the update nor a range is empty; the bytes do not change until it
  // is persisted. Errors: the fabric's; part of it may have been posted.
  absl::Status Post(std::span<const Range> ranges, uint32_t immediate);

  // Takes a completion with kWork. Requires: its status is OK.
  void OnCompletion(const fabric::Completion& completion);
  // Counts an ack, of the oldest update without one. Requires: there is one.
  void OnAck();

  // Numbers of updates since the start.
  uint64_t posted() const { return posted_; }
  uint64_t persisted() const { return persisted_; }
  // Returns the number of operations that have not completed.
  uint64_t posts_in_flight() const { return posts_in_flight_; }

 private:
  // Returns the largest piece of an update of `bytes`.
  uint64_t PieceBytesMax(uint64_t bytes) const;
  absl::Status WriteImmediate(std::span<const Range> ranges,
                              uint32_t immediate);
  absl::Status Flush(const Range& last);
  void CountCompleted();
  absl::Status WriteAllButTheLast(std::span<const Range> ranges,
                                  uint64_t piece_bytes);
  absl::Status Write(const Range& range, uint64_t piece_bytes);

  const Plan plan_;
  fabric::Fabric& fabric_;
  const fabric::ConnectionId connection_;
  const fabric::Fabric::Limits limits_;
  // Bytes up to which an update goes in one piece.
  const uint64_t one_piece_bytes_;
  const bool flushes_;
  // True if the last step is a completion, not an ack.
  const bool ends_by_completion_;
  // If so: the number of the last operation of each update, oldest first.
  std::deque<uint64_t> ends_;
  uint64_t operations_ = 0;
  uint64_t completed_ = 0;  // updates
  uint64_t acked_ = 0;      // updates
  uint64_t posted_ = 0;
  uint64_t persisted_ = 0;
  uint64_t posts_in_flight_ = 0;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_REQUESTER_H_
