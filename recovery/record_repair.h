// SPDX-License-Identifier: Apache-2.0
// record_repair: the bytes with which a damaged place of a ring is mended: made
// anew, or read from a peer.
//
// Idea: a record has the same place in every replica, and its checksums are
// seeded with log, epoch, LSN and place. So whoever has the key of the epoch
// that owns an LSN here can tell from bytes alone whether they are that very
// record: which peer they come from, and what else that one holds, does not
// matter. A peer is read as by any reader, without a promise (H17), and may
// write meanwhile: the bytes are checked when they are here.
//
// Invariants:
//   M1. What is written over a damaged place is a whole record that owns its
//       LSN here, header and payload checked, the same header if the own one
//       holds.
//   M2. Nothing is written behind the finding's end, or its last LSN.
// Thread safety: one thread.
// References: protocol A1, A8, H17; ring_scrub.h; docs/scrubbing.md.
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
#include "recovery/followed_replica.h"
#include "recovery/inquiry.h"
#include "recovery/ring_scrub.h"
#include "replication/fabric/fabric.h"
#include "replication/registered_bytes.h"

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
  // Starts to connect; errors show in status(). N and W must be the replica's.
  PeerRing(Fabric& fabric, Inquiry::Options at, uint32_t replica_count,
           uint32_t write_quorum, uint64_t ring_capacity);

  bool Take(const ConnectionEvent& event) { return peer_.Take(event); }
  bool Take(const Completion& completion) { return peer_.Take(completion); }

  // Errors: as FollowedReplica; FailedPrecondition (a ring of another size); no
  // memory.
  absl::Status status() const;
  // May be read from.
  bool is_ready() const { return peer_.may_ask() && !peer_.is_reading(); }
  // Reads [from, from + bytes), at most a lap. Requires: is_ready().
  void Read(RingOffset from, uint64_t bytes);
  // Where what was read lies; whatever lies elsewhere was not.
  Ring ring() const { return {memory_->bytes().data(), capacity_}; }
  RingOffset read_end() const { return read_end_; }

 private:
  const uint64_t capacity_;
  // Of which only what is read is ever touched.
  absl::StatusOr<Region> memory_;
  const absl::StatusOr<std::unique_ptr<RegisteredBytes>> registered_;
  RingOffset read_end_;
  FollowedReplica peer_;  // destroyed first: it reads into the memory
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RECORD_REPAIR_H_
