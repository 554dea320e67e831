// SPDX-License-Identifier: Apache-2.0
// record_repair: the bytes that repair a damaged place of a ring, computed or
// read from a peer.
//
// Idea: a record has the same place in every replica, and its checksums are
// seeded with log, epoch, the epoch's nonce, LSN and place. So a process with
// the epoch table can tell from bytes alone whether they are that very record.
// It does not matter which peer gives them, or what else that peer holds. A
// node shows its bytes without a promise (P-H17). Where a local primary holds
// the node's region, the node asks it for them (P-A7). Others may write there
// meanwhile, so the bytes are checked only once they are here.
//
// Invariants:
//   RR1. Only a whole record that owns its LSN here is written over a damaged
//        place, header and payload checked. If the own header holds, the new
//        one must equal it.
//   RR2. Nothing is written past the finding's end, or its last LSN.
// Thread safety: one thread.
// References: protocol P-A1, P-A8, P-H17; ring_scrub.h;
// docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_SCRUB_RECORD_REPAIR_H_
#define ALPHEUS_RECOVERY_SCRUB_RECORD_REPAIR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/region.h"
#include "recovery/protocol/control_call.h"
#include "recovery/scrub/ring_scrub.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

// Bytes to write into the ring; they don't cross its end.
struct RepairedBytes {
  RingOffset offset;
  std::vector<std::byte> bytes;

  bool operator==(const RepairedBytes&) const = default;
};

struct RepairedRecords {
  std::vector<RepairedBytes> places;
  uint64_t records = 0;
};

// Returns the repair that needs no peer, for kPad and kCleanedWord; nothing for
// other kinds.
RepairedRecords RepairedWithoutPeer(const RingScrub& scrub);

// Returns the first records of the finding that are valid in `read`, a ring
// with a peer's bytes up to `read_end`.
RepairedRecords RepairedFromPeer(Ring read, RingOffset read_end,
                                 const RingScrub& scrub);

// Returns how many of the finding's records, from the first on, are valid now
// in the ring itself.
uint64_t ValidInFinding(const RingScrub& scrub, uint64_t records_max);

// Reads parts of a peer's ring.
class PeerRing {
 public:
  struct Range {
    RingOffset from;
    uint64_t bytes = 0;  // at most a lap, at least 1
  };

  // Starts to connect, and to read `first`; errors show in status().
  PeerRing(fabric::Fabric& fabric, ControlCall::Options at,
           uint64_t ring_capacity, const Range& first);

  bool OnConnectionEvent(const fabric::ConnectionEvent& event) {
    return peer_.OnConnectionEvent(event);
  }
  bool OnCompletion(const fabric::Completion& completion);

  // Returns the status. Errors: as ControlCall; FailedPrecondition (a ring of
  // another size); no memory.
  absl::Status status() const;
  bool has_answered() const { return has_answered_; }
  bool is_reading() const { return left_ > 0; }
  // Requires: !is_reading().
  void Read(const Range& range);
  // Returns the ring with the bytes that were read, up to read_end(). The peer
  // may show less than was asked for. Other places were not read.
  Ring ring() const { return {memory_->bytes().data(), capacity_}; }
  RingOffset read_end() const { return read_end_; }

 private:
  absl::Status OnReply(const Message& reply);
  Fetch Next() const;

  const uint64_t capacity_;
  // Memory of a whole ring, of which only the read parts are ever touched.
  absl::StatusOr<Region> memory_;
  RingOffset read_end_;
  uint64_t left_ = 0;  // bytes still to read
  bool has_answered_ = false;
  ControlCall peer_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SCRUB_RECORD_REPAIR_H_
