// SPDX-License-Identifier: Apache-2.0
// wal_space: limits the part of the ring that WAL files fill, so that there is
// always room for operations that free room.
//
// Idea: a full ring is emptied by removing files, and before that RocksDB makes
// a new one. Both write a small record. So data leaves some room free, the
// *headroom*. It is shared out, because many files, or crashes between making
// and removing one, could use all of it:
//   the first half    records that make a file
//   a quarter more    records that rename, shorten or remove one
//   the last quarter  the home record
// Beyond its share a file is made or removed without a record (WalStore).
//
// Invariants:
//   WSP1. Data is admitted only while the records from the oldest file on, the
//         new one included, leave the headroom free.
//   WSP2. Records that make a file, and its first few bytes, leave the second
//         half of the headroom free. Records that rename, shorten or remove a
//         file leave the last quarter free.
// Thread safety: all members concurrently.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_SPACE_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_SPACE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace alpheus::wal {

class WalSpace {
 public:
  // `payload_bytes_max` is the log's: half the ring minus a header.
  explicit WalSpace(uint64_t payload_bytes_max)
      : ring_bytes_(2 * (payload_bytes_max + kHeaderBytes)),
        headroom_bytes_(std::min<uint64_t>(64 << 10, ring_bytes_ / 8)),
        // Metadata is some 100 bytes a record, a few for each file. At the
        // ring's end a record that does not fit leaves its own size unused.
        limit_bytes_(ring_bytes_ - headroom_bytes_ - CostOf(data_bytes_max())) {
  }

  // Returns the largest piece; larger data is split, so no record needs half
  // the ring.
  size_t data_bytes_max() const {
    return std::min<uint64_t>(256 << 10, ring_bytes_ / 16);
  }
  uint64_t limit_bytes() const { return limit_bytes_; }

  // Counts a record; returns the count before it.
  uint64_t Add(size_t payload_bytes) {
    return added_.fetch_add(CostOf(payload_bytes), std::memory_order_relaxed);
  }
  uint64_t position() const { return added_.load(std::memory_order_relaxed); }
  // Marks everything counted before `position` as free.
  void FreeBefore(uint64_t position) {
    freed_.store(position, std::memory_order_release);
  }
  uint64_t used_bytes() const {
    const uint64_t freed = freed_.load(std::memory_order_acquire);
    return added_.load(std::memory_order_relaxed) - freed;
  }
  bool Fits(size_t payload_bytes) const {
    return FitsBelow(limit_bytes_, payload_bytes);
  }
  // Returns whether a record fits that makes a file, or begins it.
  bool FitsMaking(size_t payload_bytes) const {
    return FitsBelow(limit_bytes_ + headroom_bytes_ / 2, payload_bytes);
  }
  // Returns whether a record fits that renames, shortens or removes a file.
  bool FitsChanging(size_t payload_bytes) const {
    return FitsBelow(limit_bytes_ + headroom_bytes_ / 4 * 3, payload_bytes);
  }

 private:
  bool FitsBelow(uint64_t limit_bytes, size_t payload_bytes) const {
    return used_bytes() + CostOf(payload_bytes) <= limit_bytes;
  }

  static constexpr uint64_t kHeaderBytes = 48;

  // Upper bound on a record's size in the ring: header, and up to a whole line.
  static uint64_t CostOf(size_t payload_bytes) {
    return (kHeaderBytes + payload_bytes + 63) / 64 * 64;
  }

  const uint64_t ring_bytes_;
  const uint64_t headroom_bytes_;
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> added_{0};
  std::atomic<uint64_t> freed_{0};
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_SPACE_H_
