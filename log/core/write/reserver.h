// SPDX-License-Identifier: Apache-2.0
// reserver: assigns LSNs and ring space in one atomic step.
//
// Idea: LSN and tail move together, so they share one 64-bit word: the low 23
// bits of the next LSN and the low 40 bits of the tail, counted in lines. The
// remaining bit stops reserving for a moment. The whole values are rebuilt
// from the durable LSN and from the offset a lap before the reuse limit. These
// are never further behind than the exposure cap and the ring's capacity. In
// the first lap that offset may be below 0; it is counted modulo 2^64, as is
// what is rebuilt from it. One compare-and-swap reserves, a PAD at the end of
// the ring included.
//
// Invariants:
//   RV1. LSNs are consecutive; extents are adjacent; no record crosses the end
//        of the ring.
//   RV2. No space beyond the reuse limit is assigned (RL3, ring_log.h).
//   RV3. No LSN beyond durable + cap is assigned (RL2, ring_log.h).
// Why the rebuilt values are right: the word is loaded first, the references
// after it. A swap succeeds only if the word did not change meanwhile. Then
// both references belong to a moment at which the word was current, so the
// distance is in [0, cap] and [0, capacity]. Example with 3 bits for the LSN:
// if the durable LSN is 13 and the bits are 1, the next LSN is 17, the first
// value from 13 on that ends in these bits. (For the word to come back to the
// same bits, exactly a multiple of 2^23 LSNs and of 2^40 lines would have to
// pass.)
// Thread safety: all members concurrently.
// References: Arcadia §4.3; protocol P-A3.1, P-L5, P-L6, P-F6.
#ifndef ALPHEUS_LOG_CORE_WRITE_RESERVER_H_
#define ALPHEUS_LOG_CORE_WRITE_RESERVER_H_

#include <atomic>
#include <cstdint>

#include "absl/base/attributes.h"
#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/format/layout.h"

namespace alpheus {

class Reserver {
 public:
  enum class Outcome {
    kReserved,
    kExposureFull,  // the cap on records that are not durable is reached
    kRingFull,      // not enough space up to the reuse limit
    kQuiesced,      // for a moment; see TryQuiesce
  };

  struct Space {
    Lsn lsn;
    RingOffset begin;   // start of the PAD, or of the record if none
    RingOffset offset;  // start of the record's header
    RingOffset end;     // end of the record
  };

  struct Next {
    Lsn lsn;
    RingOffset tail;
  };

  // `durable_lsn` belongs to the forcer. `reuse_limit` belongs to the
  // reclaimer; it is an offset: bytes before it may be assigned. It is at most
  // a lap after the head (RCL2, reclaimer.h).
  // Requires: exposure_records_max <= 2^20, capacity < 2^45.
  Reserver(uint64_t capacity, uint32_t exposure_records_max, Next start,
           const std::atomic<uint64_t>& durable_lsn,
           const std::atomic<uint64_t>& reuse_limit)
      : ring_(nullptr, capacity),
        exposure_records_max_(exposure_records_max),
        durable_lsn_(durable_lsn),
        reuse_limit_(reuse_limit),
        word_(Pack(start)) {}

  // Fetches the word for writing: between two cores it takes half a fence.
  void PrefetchForReserve() const { __builtin_prefetch(&word_, 1); }

  // Takes the next LSN and `record_bytes` (a multiple of a line, at most half
  // the capacity).
  ABSL_ATTRIBUTE_ALWAYS_INLINE Outcome TryReserve(uint64_t record_bytes,
                                                  Space* space) {
    // Acquire: the references below must not be older than the word.
    uint64_t word = word_.load(std::memory_order_acquire);
    for (;;) {
      const uint64_t durable = durable_lsn_.load(std::memory_order_acquire);
      const uint64_t limit = reuse_limit_.load(std::memory_order_acquire);
      *space = SpaceAt(Unpack(word, durable, limit), record_bytes);
      Outcome outcome = Outcome::kReserved;
      if ((word & kQuiescedBit) != 0) {
        outcome = Outcome::kQuiesced;
      } else if (space->lsn.value - durable > exposure_records_max_) {
        outcome = Outcome::kExposureFull;
      } else if (space->end.value > limit) {
        outcome = Outcome::kRingFull;
      }
      if (outcome != Outcome::kReserved) [[unlikely]] {
        // A refusal, too, counts only if the word was current.
        const uint64_t current = word_.load(std::memory_order_acquire);
        if (current == word) return outcome;
        word = current;
        continue;
      }
      // Acq_rel: the next thread to reserve sees what this one saw of durable
      // and limit; on failure `word` is reloaded before the references.
      if (word_.compare_exchange_weak(word, Pack({space->lsn + 1, space->end}),
                                      std::memory_order_acq_rel,
                                      std::memory_order_acquire)) [[likely]] {
        return Outcome::kReserved;
      }
    }
  }

  // Returns the LSN and the tail of the next reservation.
  Next next() const;

  // Returns how many assigned LSNs are not durable, at one moment: at most the
  // cap.
  uint64_t Exposed() const;

  // Blocks reserving until Unhold, if every reserved record is durable; else
  // returns false. The caller is then alone at the log's end.
  bool TryQuiesce();
  // Blocks reserving until Unhold, whatever is reserved. Returns false if it is
  // blocked already. Once nothing is exposed the caller is alone, too.
  bool TryHold();
  void Unhold();
  // Returns whether reserving is blocked now.
  bool IsHeld() const {
    return (word_.load(std::memory_order_acquire) & kQuiescedBit) != 0;
  }

 private:
  static constexpr int kLsnBits = 23;
  static constexpr int kLineBits = 40;
  static constexpr uint64_t kQuiescedBit = uint64_t{1}
                                           << (kLsnBits + kLineBits);
  static constexpr uint64_t kLsnMask = (uint64_t{1} << kLsnBits) - 1;
  static constexpr uint64_t kLineMask = (uint64_t{1} << kLineBits) - 1;

  static uint64_t Pack(Next next) {
    return (next.lsn.value & kLsnMask) << kLineBits |
           (next.tail.value / kLineBytes & kLineMask);
  }
  // The value at or above `reference` whose low bits are `low`.
  static uint64_t Rebuild(uint64_t reference, uint64_t low, uint64_t mask) {
    return reference + ((low - reference) & mask);
  }
  // Returns Next as of `word`; valid only if the word is still current
  // afterwards.
  Next Unpack(uint64_t word, uint64_t durable_lsn, uint64_t reuse_limit) const {
    const uint64_t before = reuse_limit - ring_.capacity();
    Next next;
    next.lsn =
        Lsn(Rebuild(durable_lsn, word >> kLineBits & kLsnMask, kLsnMask));
    next.tail = RingOffset(
        Rebuild(before / kLineBytes, word & kLineMask, kLineMask) * kLineBytes);
    return next;
  }
  // A PAD goes before a record that would cross the end of the ring (RV1).
  Space SpaceAt(const Next& next, uint64_t record_bytes) const {
    const uint64_t until_end = ring_.UntilEnd(next.tail);
    Space space;
    space.lsn = next.lsn;
    space.begin = next.tail;
    space.offset =
        record_bytes <= until_end ? next.tail : next.tail + until_end;
    space.end = space.offset + record_bytes;
    return space;
  }

  const Ring ring_;
  const uint32_t exposure_records_max_;
  const std::atomic<uint64_t>& durable_lsn_;
  const std::atomic<uint64_t>& reuse_limit_;
  alignas(kLineBytes) std::atomic<uint64_t> word_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_RESERVER_H_
