// SPDX-License-Identifier: Apache-2.0
#include "api/c/open_reservations.h"

#include <bit>
#include <utility>

#include "log/base/check.h"

namespace alpheus::c {

OpenReservations::OpenReservations(uint32_t exposure_records_max)
    : mask_(std::bit_ceil(uint64_t{exposure_records_max}) - 1),
      slots_(std::make_unique<Slot[]>(mask_ + 1)) {}

void OpenReservations::Put(Reservation&& reservation) {
  const Lsn lsn = reservation.lsn();
  Slot& slot = SlotOf(lsn);
  // Relaxed: the log itself orders Take of the slot's last LSN before this.
  ALPHEUS_CHECK(slot.lsn.load(std::memory_order_relaxed) == 0,
                "OR2 (open_reservations.h)");
  slot.reservation = std::move(reservation);
  // Release: a thread that finds the LSN sees the reservation.
  slot.lsn.store(lsn.value, std::memory_order_release);
}

Reservation* OpenReservations::Find(Lsn lsn) {
  Slot& slot = SlotOf(lsn);
  const bool found =
      lsn.value != 0 && slot.lsn.load(std::memory_order_acquire) == lsn.value;
  return found ? &slot.reservation : nullptr;
}

Reservation OpenReservations::Take(Lsn lsn) {
  Slot& slot = SlotOf(lsn);
  uint64_t expected = lsn.value;
  // Acquire: see Put. Release is not needed: completing the record, which comes
  // later, publishes that the slot is empty.
  if (expected == 0 ||
      !slot.lsn.compare_exchange_strong(expected, 0, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
    return {};
  }
  return std::move(slot.reservation);
}

bool OpenReservations::AnyIn(Lsn first, Lsn end) {
  for (Lsn lsn = first; lsn < end; lsn = lsn + 1) {
    if (Find(lsn) != nullptr) return true;
  }
  return false;
}

}  // namespace alpheus::c
