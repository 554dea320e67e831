// SPDX-License-Identifier: Apache-2.0
// wal_file: one WAL file, as the places of its bytes in the log.
//
// Idea: the bytes stay in the ring, where they were written; the file knows the
// pieces. A reader holds a reference, and the records of a file are not cleaned
// before the last reference is gone, like an open file that is removed.
//
// Invariants:
//   WF1. Extents are in order and without gaps; they end at size().
//   WF2. A file that has data is recorded: the log has the record of its
//        creation.
// Thread safety: all members concurrently; `mutex` guards the extents. A thread
// that writes records holds it from the LSN to the extent, so that the order of
// the bytes is that of the LSNs.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_FILE_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

#include "log/base/ids.h"
#include "log/base/mutex.h"

namespace alpheus::wal {

class WalFile {
 public:
  // Not recorded yet.
  explicit WalFile(uint64_t seconds) : seconds_(seconds) {}

  // Notes the record `first_lsn` that made the file; `position` counts the
  // bytes of the log before it (wal_space.h). Called once, before the file has
  // data.
  void SetRecorded(uint64_t id, Lsn first_lsn, uint64_t position) {
    first_lsn_ = first_lsn;
    first_position_ = position;
    last_lsn_.store(first_lsn.value, std::memory_order_release);
    // Last: readers without the lock take it as a sign that all is set.
    id_.store(id, std::memory_order_release);
  }
  bool is_recorded() const { return id() != 0; }

  // Return the record of its creation. Requires: is_recorded().
  uint64_t id() const { return id_.load(std::memory_order_acquire); }
  Lsn first_lsn() const { return first_lsn_; }
  uint64_t first_position() const { return first_position_; }

  Mutex mutex;

  uint64_t size() const { return size_.load(std::memory_order_acquire); }
  uint64_t seconds() const { return seconds_.load(std::memory_order_relaxed); }
  // Returns the last record of its data: when that is durable, all data is.
  Lsn last_lsn() const {
    return Lsn(last_lsn_.load(std::memory_order_acquire));
  }
  // Returns whether the last append was forced: then the next one likely will
  // be.
  bool was_forced() const {
    return forced_lsn_.load(std::memory_order_relaxed) ==
           last_lsn_.load(std::memory_order_relaxed);
  }
  // Notes that a force of all up to `lsn` returned. A hint, only for
  // was_forced.
  void NoteForced(Lsn lsn) {
    forced_lsn_.store(lsn.value, std::memory_order_relaxed);
  }
  // Returns its last record that was durable when it was appended.
  Lsn durable_lsn() const {
    return Lsn(durable_lsn_.load(std::memory_order_acquire));
  }
  // Returns whether it is removed: not found any more, and no longer written.
  bool is_removed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return is_removed_;
  }

  // Adds `bytes`, which lie in the ring in record `lsn`.
  void Extend(Lsn lsn, std::span<const std::byte> bytes, bool is_durable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Requires: size <= size().
  void Truncate(Lsn lsn, uint64_t size, uint64_t seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void SetRemoved(bool is_removed) ABSL_LOCKS_EXCLUDED(mutex) {
    const MutexLock lock(mutex);
    is_removed_ = is_removed;
  }
  void Touch(uint64_t seconds) {
    seconds_.store(seconds, std::memory_order_relaxed);
  }

  // Copies bytes from `offset` on, as many as fit. Returns their number; below
  // out.size() only at the end.
  size_t Read(uint64_t offset, std::span<std::byte> out);

 private:
  struct Extent {
    uint64_t offset;  // in the file
    std::span<const std::byte> bytes;
  };

  // A deque: adding one never copies the others.
  std::deque<Extent> extents_ ABSL_GUARDED_BY(mutex);
  bool is_removed_ ABSL_GUARDED_BY(mutex) = false;
  std::atomic<uint64_t> id_{0};
  Lsn first_lsn_;
  uint64_t first_position_ = 0;
  // Written under the mutex; read without it by threads that only look.
  std::atomic<uint64_t> size_{0};
  std::atomic<uint64_t> seconds_;
  std::atomic<uint64_t> last_lsn_{0};
  std::atomic<uint64_t> forced_lsn_{0};
  std::atomic<uint64_t> durable_lsn_{0};
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_FILE_H_
