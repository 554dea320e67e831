// SPDX-License-Identifier: Apache-2.0
// own_reservations: whether the calling thread may hold an open reservation.
//
// Idea: before it waits, a call makes sure that it does not wait for a
// reservation of its own thread (P-F2), by a walk over all open records. Most
// threads hold none and need not look: a count per thread, over all logs,
// says so. A reservation that another thread finishes stays in the count of
// the thread that made it, so the count is too high at worst.
//
// Thread safety: each thread has its own count.
#ifndef ALPHEUS_LOG_CORE_WRITE_OWN_RESERVATIONS_H_
#define ALPHEUS_LOG_CORE_WRITE_OWN_RESERVATIONS_H_

#include <cstdint>

namespace alpheus {

// At least the number of open reservations of the calling thread.
inline uint64_t& OwnReservationsMax() {
  static constinit thread_local uint64_t count = 0;
  return count;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_OWN_RESERVATIONS_H_
