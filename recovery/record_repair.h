// SPDX-License-Identifier: Apache-2.0
// record_repair: the bytes with which a damaged place of a ring is mended: made
// anew, or read from a peer.
//
// Idea: a record has the same place in every replica, and its checksums are
// seeded with log, epoch, LSN and place. So whoever has the key of the epoch
// that owns an LSN here can tell from bytes alone whether they are that very
// record: which peer they come from, and what else that one holds, does not
// matter. A peer shows what it has without a promise (P-H17), or has it from
// the primary that has its region (P-A7), which may write meanwhile: the bytes
// are checked when they are here.
//
// Invariants:
//   RR1. What is written over a damaged place is a whole record that owns its
//        LSN here, header and payload checked, the same header if the own one
//        holds.
//   RR2. Nothing is written behind the finding's end, or its last LSN.
// Thread safety: one thread.
// References: protocol P-A1, P-A8, P-H17; ring_scrub.h;
// docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_RECORD_REPAIR_H_
#define ALPHEUS_RECOVERY_RECORD_REPAIR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/record_cursor.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "log/pmem/region.h"
#include "recovery/inquiry.h"
#include "recovery/ring_scrub.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

// Bytes that are to stand in the ring; they don't cross its end.
struct MendedBytes {
  RingOffset offset;
  std::vector<std::byte> bytes;

  bool operator==(const MendedBytes&) const = default;
};

struct MendedRecords {
  std::vector<MendedBytes> places;
  uint64_t records = 0;
};

// What needs no peer: of kPad and kCleanedWord. Nothing of the others.
MendedRecords MendedWithoutPeer(const RingScrub& scrub);

// The first records of the finding that hold in `read`, a ring in which a
// peer's bytes lie up to `read_end`.
MendedRecords MendedFromPeer(Ring read, RingOffset read_end,
                             const RingScrub& scrub);

// How many of the finding's records, from the first on, hold now in the ring
// itself.
uint64_t HeldOfFinding(const RingScrub& scrub, uint64_t records_max);

// A peer's ring, of which parts are read.
class PeerRing {
 public:
  struct Range {
    RingOffset from;
    uint64_t bytes = 0;  // at most a lap, at least 1
  };

  // Starts to connect, and to read; errors show in status().
  PeerRing(Fabric& fabric, Inquiry::Options at, uint64_t ring_capacity,
           const Range& first);

  bool Take(const ConnectionEvent& event) { return peer_.Take(event); }
  bool Take(const Completion& completion);

  // Errors: as Inquiry; FailedPrecondition (a ring of another size); no memory.
  absl::Status status() const;
  bool has_answered() const { return has_answered_; }
  bool is_reading() const { return left_ > 0; }
  // Requires: !is_reading().
  void Read(const Range& range);
  // Where what was read lies, up to read_end(): less than was asked for where
  // the peer shows no more. Whatever lies elsewhere was not read.
  Ring ring() const { return {memory_->bytes().data(), capacity_}; }
  RingOffset read_end() const { return read_end_; }

 private:
  absl::Status TakeReply(const Message& reply);
  Fetch Next() const;

  const uint64_t capacity_;
  // Of which only what is read is ever touched.
  absl::StatusOr<Region> memory_;
  RingOffset read_end_;
  uint64_t left_ = 0;  // to be read
  bool has_answered_ = false;
  Inquiry peer_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RECORD_REPAIR_H_
