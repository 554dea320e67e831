// SPDX-License-Identifier: Apache-2.0
// completion_tracker: records which of the records that are not durable are
// finished.
//
// Idea: the tracker is a table in memory with one slot per LSN modulo its size.
// An LSN takes its slot the moment it is reserved. The exposure cap ensures
// that the slot's last user is durable by then, so nothing is ever allocated or
// freed. The slot's word holds LSN and state together: a word that names
// another LSN says "open", whatever its state.
//
// Invariants:
//   CTR1. The state of an LSN only goes open -> completed -> persisted, or open
//         -> persisted. A record whose appender itself moved the durable LSN
//         over it stays open here: no thread asks for the state of a durable
//         record.
//   CTR2. A thread that saw an LSN finished may read its slot (extent, header
//         checksum).
//   CTR3. At most size() consecutive LSNs are in use (RL2, ring_log.h).
// Thread safety: the LSN's own writer calls NoteReserved and Mark…; for
// MarkPersisted also the leader of its batch. Any thread reads.
#ifndef ALPHEUS_LOG_CORE_WRITE_COMPLETION_TRACKER_H_
#define ALPHEUS_LOG_CORE_WRITE_COMPLETION_TRACKER_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/ids.h"

namespace alpheus {

class CompletionTracker {
 public:
  enum class State : uint64_t {
    kOpen = 0,       // reserved, or not even that
    kCompleted = 1,  // sealed (or aborted); stores may still be in the cache
    kPersisted = 2,  // inside the persistence domain
  };

  // Place of a record: [begin, end), the PAD in front of it included.
  struct Extent {
    RingOffset begin;
    RingOffset end;
  };

  // Room for at least `records_max` LSNs.
  explicit CompletionTracker(uint32_t records_max)
      : size_(std::bit_ceil(records_max)),
        slots_(std::make_unique<Slot[]>(size_)) {}

  uint32_t size() const { return size_; }

  // Takes the slot for `lsn`. Called by the writer right after it got `lsn`.
  void NoteReserved(Lsn lsn, Extent extent, uint32_t owner) {
    Slot& slot = SlotOf(lsn);
    // Relaxed: published by the release store of the word below (CTR2); the
    // owner is only compared by the very thread that stored it.
    slot.begin.store(extent.begin.value, std::memory_order_relaxed);
    slot.end.store(extent.end.value, std::memory_order_relaxed);
    slot.owner.store(OwnerWord(lsn, owner), std::memory_order_relaxed);
  }

  // Marks the record sealed; the forcer may take it.
  void MarkCompleted(Lsn lsn, uint32_t header_crc) {
    Slot& slot = SlotOf(lsn);
    slot.header_crc.store(header_crc, std::memory_order_relaxed);
    slot.word.store(Word(lsn, State::kCompleted), std::memory_order_release);
  }

  // Marks the record persisted; for the leader of its batch. Requires: the
  // caller's fence covered the record. Release: a thread that sees it persisted
  // also sees what the fence covered.
  void MarkPersisted(Lsn lsn) {
    SlotOf(lsn).word.store(Word(lsn, State::kPersisted),
                           std::memory_order_release);
  }
  // Marks the record persisted; for its own appender, which did not complete it
  // before.
  void MarkPersisted(Lsn lsn, uint32_t header_crc) {
    SlotOf(lsn).header_crc.store(header_crc, std::memory_order_relaxed);
    MarkPersisted(lsn);
  }

  State StateOf(Lsn lsn) const {
    // Acquire: pairs with Mark…, for the extent and the record's bytes.
    const uint64_t word = SlotOf(lsn).word.load(std::memory_order_acquire);
    return word >> kStateBits == lsn.value
               ? static_cast<State>(word & kStateMask)
               : State::kOpen;
  }
  bool IsFinished(Lsn lsn) const { return StateOf(lsn) != State::kOpen; }

  // Requires: IsFinished(lsn) was seen by this thread.
  Extent ExtentOf(Lsn lsn) const {
    const Slot& slot = SlotOf(lsn);
    return {RingOffset(slot.begin.load(std::memory_order_relaxed)),
            RingOffset(slot.end.load(std::memory_order_relaxed))};
  }

  // Requires: as ExtentOf, and `lsn` is a record (not given up by a failure).
  uint32_t HeaderCrcOf(Lsn lsn) const {
    return SlotOf(lsn).header_crc.load(std::memory_order_relaxed);
  }

  // Returns true if `owner` reserved `lsn` and did not detach it.
  bool IsOwnedBy(Lsn lsn, uint32_t owner) const {
    return SlotOf(lsn).owner.load(std::memory_order_relaxed) ==
           OwnerWord(lsn, owner);
  }
  void Disown(Lsn lsn) {
    SlotOf(lsn).owner.store(OwnerWord(lsn, 0), std::memory_order_relaxed);
  }

 private:
  static constexpr int kStateBits = 2;
  static constexpr uint64_t kStateMask = (1u << kStateBits) - 1;

  // A line each: neighbours in LSN order belong to different threads.
  struct alignas(kLineBytes) Slot {
    std::atomic<uint64_t> word{0};
    std::atomic<uint64_t> begin{0};
    std::atomic<uint64_t> end{0};
    std::atomic<uint64_t> owner{0};
    std::atomic<uint32_t> header_crc{0};
  };

  static uint64_t Word(Lsn lsn, State state) {
    return lsn.value << kStateBits | static_cast<uint64_t>(state);
  }
  static uint64_t OwnerWord(Lsn lsn, uint32_t owner) {
    return lsn.value << 32 | owner;
  }
  Slot& SlotOf(Lsn lsn) const { return slots_[lsn.value & (size_ - 1)]; }

  const uint32_t size_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_COMPLETION_TRACKER_H_
