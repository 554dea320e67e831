// SPDX-License-Identifier: Apache-2.0
// ring_log_wait: the loop in which calls of ring_log wait; for its own sources
// only.
//
// Idea: a blocking call is a loop over a step that does not block, with the
// waiter between steps. Before a call sleeps it announces itself and steps once
// more, because changes before the announcement notified nobody. In a
// replicated log each step processes acks, and one of the calls that would
// sleep waits for acks (activity_watch.h).
//
// Thread safety: as RingLog.
#ifndef ALPHEUS_LOG_CORE_RING_RING_LOG_WAIT_H_
#define ALPHEUS_LOG_CORE_RING_RING_LOG_WAIT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/deadline.h"
#include "log/core/ring/ring_log.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
template <class Step>
absl::Status RingLog<P>::WaitFor(const char* call, Deadline deadline,
                                 Step step) {
  ActivityWatch::Role role(watch_.get(), progress_);
  for (int round = 0;; ++round) {
    absl::StatusOr<bool> finished = step();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
    if (deadline.is_set() && deadline.HasPassed(clock_.NowNanos())) {
      return absl::DeadlineExceededError(absl::StrCat(
          options_.name, ": ", call, " reached its deadline; LSN ",
          first_open_lsn().value, " is the first not finished, durable is ",
          durable_lsn().value,
          ". A record that was completed may still become durable"));
    }
    if (progress_.Spin(round)) continue;
    const uint32_t seen = progress_.Announce();
    finished = step();
    if (finished.ok() && !*finished) role.Wait(seen, deadline);
    progress_.Withdraw();
    if (!finished.ok()) return finished.status();
    if (*finished) return absl::OkStatus();
  }
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RING_RING_LOG_WAIT_H_
