// SPDX-License-Identifier: Apache-2.0
// open_reservations: maps LSNs to the reservations of one log, so that C names
// a record by a number.
//
// Idea: LG5 (log.h) bounds the LSNs that are reserved and not durable by a
// power of two, so LSN modulo that bound is a slot that no two open LSNs share.
// A slot is emptied before its record is completed, hence before the record can
// be durable, hence before the slot's next LSN is given.
//
// Invariants:
//   OR1. A slot whose word is n holds the open reservation of LSN n.
//   OR2. Put finds the slot of its LSN empty.
// Thread safety: Put, Find and Take may be called concurrently. Find's pointer
// is valid until Take of the same LSN; the caller orders these (log.h).
#ifndef ALPHEUS_API_C_OPEN_RESERVATIONS_H_
#define ALPHEUS_API_C_OPEN_RESERVATIONS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "alpheus/log.h"

namespace alpheus::c {

class OpenReservations {
 public:
  // `exposure_records_max` as in LogOptions.
  explicit OpenReservations(uint32_t exposure_records_max);

  void Put(Reservation&& reservation);

  // Returns the open reservation of `lsn`, or nullptr.
  Reservation* Find(Lsn lsn);

  // Takes the reservation out; of several threads one gets it. Returns one that
  // is not open if there is none.
  Reservation Take(Lsn lsn);

  // Returns true if a reservation in [first, end) is open. Requires: no other
  // call runs meanwhile.
  // Requires: nobody calls the others meanwhile.
  bool AnyIn(Lsn first, Lsn end);

 private:
  // A line of its own or two, since neighbours belong to other threads.
  struct alignas(64) Slot {
    std::atomic<uint64_t> lsn{0};  // 0: empty
    Reservation reservation;
  };

  Slot& SlotOf(Lsn lsn) { return slots_[lsn.value & mask_]; }

  const uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
};

}  // namespace alpheus::c

#endif  // ALPHEUS_API_C_OPEN_RESERVATIONS_H_
