// SPDX-License-Identifier: Apache-2.0
// deadline: the time until which a blocking call may wait.
//
// A deadline is a point on the monotonic clock, so that one deadline can be
// passed through several calls. The default means "no deadline of my own": the
// call waits for what other threads of this process must finish, and fails at
// once where only the application can help (a ring full of records that nobody
// cleaned).
//
// Thread safety: a value.
#ifndef ALPHEUS_LOG_BASE_DEADLINE_H_
#define ALPHEUS_LOG_BASE_DEADLINE_H_

#include <chrono>
#include <cstdint>
#include <limits>

namespace alpheus {

class Deadline {
 public:
  // No deadline of the caller's own.
  constexpr Deadline() = default;

  // Returns the deadline at `nanos` on the log's clock
  // (std::chrono::steady_clock unless a test injected another one).
  static constexpr Deadline AtNanos(int64_t nanos) { return Deadline(nanos); }

  // Returns the deadline `timeout` from now on std::chrono::steady_clock;
  // beyond its range: none.
  static Deadline In(std::chrono::nanoseconds timeout);

  // Returns true if the caller gave one.
  constexpr bool is_set() const { return at_nanos_ != kNever; }

  // Returns true if it is set and `now_nanos` has reached it.
  constexpr bool HasPassed(int64_t now_nanos) const {
    return is_set() && now_nanos >= at_nanos_;
  }

  constexpr int64_t at_nanos() const { return at_nanos_; }

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  constexpr explicit Deadline(int64_t nanos) : at_nanos_(nanos) {}

  int64_t at_nanos_ = kNever;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_DEADLINE_H_
