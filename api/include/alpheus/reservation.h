// SPDX-License-Identifier: Apache-2.0
// reservation: handle of a record that has its LSN and its space, and waits to
// be filled.
//
// Idea: the handle owns the duty to finish the record. Log::Complete seals it;
// dropping the handle makes the record ABORTED. So no exception and no early
// return leaves a hole that blocks every later force (P-F1).
//
// Thread safety: several threads may fill the payload at once; one thread at a
// time uses the handle itself.
#ifndef ALPHEUS_API_INCLUDE_ALPHEUS_RESERVATION_H_
#define ALPHEUS_API_INCLUDE_ALPHEUS_RESERVATION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "log/base/ids.h"
#include "log/core/write/reserved_record.h"

namespace alpheus {

class LogEngine;

class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)),
        record_(other.record_) {}
  Reservation& operator=(Reservation&& other) noexcept {
    if (this != &other) {
      Abort();
      engine_ = std::exchange(other.engine_, nullptr);
      record_ = other.record_;
    }
    return *this;
  }
  // An open reservation becomes ABORTED. Requires: its log still exists.
  ~Reservation() { Abort(); }

  // Returns true until Complete, Abort or a move took the record.
  bool is_open() const { return engine_ != nullptr; }
  Lsn lsn() const { return record_.lsn; }
  size_t bytes() const { return record_.payload_bytes; }
  // Returns the payload's offset; see Log::ring.
  RingOffset offset() const;
  // Returns the epoch in which the record is written. A log whose members
  // change goes on in a later one, but not while a reservation is open.
  // Requires: is_open().
  Epoch epoch() const;

  // Returns the record's bytes in the ring, 16-byte aligned, not zeroed. They
  // may be written until Complete, and read from then on until the record is
  // cleaned or the log is gone (Log::CheckPayloads). Requires: is_open().
  std::span<std::byte> payload() {
    record_.filled_in_place = true;
    return {record_.payload, record_.payload_bytes};
  }

  // Gives the LSN up now: readers pass over it. Does nothing if not open.
  void Abort();

  // Announces that another thread will complete this record. A Force of the
  // reserving thread then waits for it, instead of reporting a deadlock with
  // itself.
  void Detach();

 private:
  friend class Log;
  friend class LogEngine;
  Reservation(LogEngine* engine, const ReservedRecord& record)
      : engine_(engine), record_(record) {}

  LogEngine* engine_ = nullptr;
  ReservedRecord record_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_INCLUDE_ALPHEUS_RESERVATION_H_
