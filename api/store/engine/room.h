// SPDX-License-Identifier: Apache-2.0
// room: how a store divides the ring of its log.
//
// Idea: a cleaner copies live objects before it frees the bytes of their
// originals, so it needs room to begin with. A ring that is full of live
// objects would take neither a copy nor a deletion, for ever. So puts end
// first, then deletions, and the rest is the cleaner's:
//
//   0                                      13/16    14/16  15/16     1
//   |---------------------------------------|--------|------|--------|
//     newest objects, at most so many         garbage  deletions
//                                                      and copies  copies
//
// An object counts with the bytes of its copy: a first copy is 8 bytes longer,
// for the version of the original. The log *owes* these bytes until then.
//
// Invariants:
//   ROM1. What only the cleaner may use holds the copies of a step, and what
//         they leave unused at the ring's end.
//   ROM2. A store that refuses a put or a deletion for want of free bytes has
//         garbage, so that cleaning makes room.
// Thread safety: a value.
// References: docs/design/object_store.md#room.
#ifndef ALPHEUS_API_STORE_ENGINE_ROOM_H_
#define ALPHEUS_API_STORE_ENGINE_ROOM_H_

#include <cstdint>

namespace alpheus::store {

class Room {
 public:
  // In a smaller ring, headers and paddings of records would take too much.
  static constexpr uint64_t kRingBytesMin = uint64_t{512} << 10;
  // Bytes of a record beside its objects, at most: its header, the store's,
  // and the rest of a line.
  static constexpr uint64_t kRecordOverhead = 128;

  // Requires: ring_bytes >= kRingBytesMin.
  explicit Room(uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

  // Bytes of the objects of one record, as copies.
  uint64_t objects_bytes_max() const {
    return ring_bytes_ / 64 - kRecordOverhead;
  }
  // Bytes of the newest objects of all keys, as copies.
  uint64_t live_bytes_max() const { return ring_bytes_ / 16 * 13; }
  // Bytes that are left free by a put; by a deletion. The cleaner takes all.
  uint64_t left_by_puts() const { return ring_bytes_ / 8; }
  uint64_t left_by_deletions() const { return ring_bytes_ / 16; }
  // With less garbage than this, cleaning frees hardly anything.
  uint64_t garbage_min() const { return ring_bytes_ / 16; }

 private:
  uint64_t ring_bytes_;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_ROOM_H_
