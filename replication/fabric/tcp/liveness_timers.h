// SPDX-License-Identifier: Apache-2.0
// liveness_timers: the timers that distinguish a dead peer of a connection from
// an idle one.
//
// Idea: the connection reports what it sees:
// * bytes that it received;
// * requests that are unanswered;
// * bytes that the peer's kernel accepted;
// * a request that waits for a receive.
// This class says what is due, and when to check next.
//
// Invariants:
//   LVT1. A peer is dead (kPeerGone) if it was asked for something and no byte
//         has come from it for retry_ns. Without a request its silence means
//         nothing.
//   LVT2. Time in which this side ran no timers is no silence either: the
//         machine may have stood still, with both of them on it. At most a
//         quarter of the awaited time is charged between two runs of the timers
//         (FB6 of fabric.h). NextCheck comes at least that often, so that a
//         thread that sleeps until then and is on time loses nothing.
//   LVT3. A peer is also dead if bytes have waited for it for retry_ns and it
//         accepted none, even if it still sends: it reads no answer.
// Thread safety: none; the adapter's lock guards it.
// References: connection.h.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_LIVENESS_TIMERS_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_LIVENESS_TIMERS_H_

#include <cstdint>

#include "log/base/deadline.h"

namespace alpheus::fabric::tcp {

// All times are of the adapter's clock, in nanoseconds.
class LivenessTimers {
 public:
  static constexpr int64_t kNever = Deadline().at_nanos();

  enum class Due {
    kNothing,
    kReceive,   // a request has waited for a receive too long
    kPeerGone,  // LVT1, LVT3
    kAsk,       // nothing was asked for a while: send a ping
  };

  // `retry_ns`: silence of a peer that is gone. `receiver_wait_ns`: how long a
  // request waits for a receive.
  LivenessTimers(int64_t retry_ns, int64_t receiver_wait_ns, int64_t now)
      : retry_ns_(retry_ns),
        receiver_wait_ns_(receiver_wait_ns),
        heard_at_(now) {}

  // Bytes came; `awaits_answer`: requests are still in flight.
  void OnHeard(int64_t now, bool awaits_answer) {
    heard_at_ = now;
    asked_at_ = awaits_answer ? now : kNever;
  }
  void OnEstablished(int64_t now) { heard_at_ = now; }
  // The peer was asked for something.
  void OnAsked(int64_t now) {
    if (asked_at_ == kNever) asked_at_ = now;
  }
  void OnAllAnswered() { asked_at_ = kNever; }
  // The peer's kernel takes bytes: it is not silent.
  void OnBytesTaken(int64_t now) {
    if (asked_at_ != kNever) asked_at_ = now;
  }
  // A try to send has ended: it sent everything that waited, a part of it, or
  // nothing.
  void OnFlushed(int64_t now, bool is_all, bool is_some) {
    if (is_all) {
      stalled_at_ = kNever;
    } else if (stalled_at_ == kNever || is_some) {
      stalled_at_ = now;
    }
  }
  // Whether a request waits for a receive.
  void OnParked(int64_t now, bool is_parked) {
    if (!is_parked) {
      parked_at_ = kNever;
    } else if (parked_at_ == kNever) {
      parked_at_ = now;
    }
  }

  // Returns when something is due.
  int64_t NextDue() const;
  // Returns what is due.
  Due WhatIsDue(int64_t now) const;
  // Returns when to check, if the last check was at `timers_ran_at` (LVT2).
  int64_t NextCheck(int64_t timers_ran_at) const;
  // Moves deadlines by the time that is not charged (LVT2).
  void ExcuseOwnPause(int64_t now, int64_t timers_ran_at);

 private:
  const int64_t retry_ns_;
  const int64_t receiver_wait_ns_;
  int64_t heard_at_;
  int64_t asked_at_ = kNever;
  int64_t stalled_at_ = kNever;  // since when the peer takes no bytes
  int64_t parked_at_ = kNever;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_LIVENESS_TIMERS_H_
