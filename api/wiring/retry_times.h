// SPDX-License-Identifier: Apache-2.0
// retry_times: when something that failed is tried again: soon at first, then
// later and later, up to a bound; soon again after a long time without failure.
//
// Thread safety: one thread.
#ifndef ALPHEUS_API_WIRING_RETRY_TIMES_H_
#define ALPHEUS_API_WIRING_RETRY_TIMES_H_

#include <algorithm>
#include <cstdint>

namespace alpheus {

class RetryTimes {
 public:
  // Nanoseconds. Requires: 0 < first <= max.
  RetryTimes(int64_t first_ns, int64_t max_ns)
      : first_ns_(first_ns), max_ns_(max_ns), wait_ns_(first_ns) {}

  // It failed at `now`. Returns when it is to be tried again.
  int64_t AfterFailureAt(int64_t now) {
    const bool was_good = now - retry_at_ > kGoodAfter * max_ns_;
    wait_ns_ = was_good ? first_ns_ : std::min(2 * wait_ns_, max_ns_);
    retry_at_ = now + wait_ns_;
    return retry_at_;
  }

 private:
  // Times max.
  static constexpr int64_t kGoodAfter = 10;

  const int64_t first_ns_;
  const int64_t max_ns_;
  int64_t wait_ns_;
  int64_t retry_at_ = INT64_MIN / 2;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_RETRY_TIMES_H_
