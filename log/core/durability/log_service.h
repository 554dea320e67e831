// SPDX-License-Identifier: Apache-2.0
// log_service: the log as its own thread sees it, which forces, notifies and
// drives replication for callers that left.
//
// Idea: the log starts no thread. Its owner has one that calls Poll once per
// interval and sleeps in between, in WaitForWork if the log is idle. In a
// replicated log WaitForAcks replaces a part of that sleep, so that callbacks
// and a replica that catches up need not wait for an interval.
//
// Invariants:
//   LSV1. A log is idle only if its backups are. A backup that lags, although W
//         others do not, must be dropped after a while, and no arrival triggers
//         that.
//   LSV2. While a call waits, the call processes acks, and this thread does
//         not.
// Thread safety: one thread, beside all callers of the log.
// May block: Poll as one step (log_durability.h), for a fence of the watermark,
// and for callbacks, which it runs. WaitForWork and WaitForAcks wait as they
// say.
// References: protocol P-A3.3, P-F7; idle_keeper.h, activity_watch.h.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_LOG_SERVICE_H_
#define ALPHEUS_LOG_CORE_DURABILITY_LOG_SERVICE_H_

#include <atomic>
#include <cstdint>

#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "log/base/waiter.h"
#include "log/core/durability/activity_watch.h"
#include "log/core/durability/idle_keeper.h"
#include "log/core/durability/log_durability.h"
#include "log/core/write/log_failure.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class LogService {
 public:
  // All are those of one log, and must outlive the object. `watch` is null in a
  // local log.
  LogService(LogDurability<P>& durability, IdleKeeper<P>& idle_keeper,
             ActivityWatch* watch, Progress& progress,
             const LogFailure& failure, const Clock& clock)
      : durability_(durability),
        idle_keeper_(idle_keeper),
        watch_(watch),
        progress_(progress),
        failure_(failure),
        clock_(clock) {}

  // Forces and notifies for callers that left; see idle_keeper.h. Called once
  // per interval, and in a replicated log whenever something arrives.
  Polled Poll();
  // Waits like Progress::Wait, after Poll returned kIdle. In a replicated log
  // an arrival ends it too, such as a broken connection. While the log is used
  // the thread should sleep elsewhere, for an interval, so that callers are
  // woken directly.
  void WaitForWork(uint32_t seen, Deadline deadline);
  // Drives replication between two calls of Poll while no application thread
  // does.
  // * While a call waits, the call processes acks; this one waits until all
  //   calls have left (LSV2).
  // * Else, while a callback or a replica that catches up needs acks, it waits
  //   for acks and processes them.
  // * Else it rests until OnDurable or BeginForce has work.
  // Returns at the latest at `deadline`, or once `stop` is not 0 and the
  // waiter's WakeAll(stop) was called. Returns true: call again, unless
  // stopped. Returns false without waiting if the log is local or has failed,
  // or the deadline has passed.
  bool WaitForAcks(Deadline deadline, const std::atomic<uint32_t>& stop);

 private:
  LogDurability<P>& durability_;
  IdleKeeper<P>& idle_keeper_;
  ActivityWatch* const watch_;
  Progress& progress_;
  const LogFailure& failure_;
  const Clock& clock_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_LOG_SERVICE_H_
