// SPDX-License-Identifier: Apache-2.0
// call_judge: checks that the log's answers to its clients are allowed.
//
// Idea: each call has a row in a table with the errors that log.h allows.
// Beyond that the log must not report a failure before it has failed, nor
// return OK for anything once a client was told of the failure. A call must end
// soon after its deadline.
//
// Checked, for one primary's log:
//   API       errors as in log.h. Unavailable and Aborted come only from a
//             failed log; DeadlineExceeded only after the deadline; an error
//             about the caller's own reservations only if it has some; DataLoss
//             only of calls that walk headers from the head on, for a header
//             that may be damaged (DMG4 of damage_checker.h)
//   P-A3      a call returns by its deadline plus kSlackNanos. A call without a
//             deadline that waits for nobody returns within kSlackNanos. Not
//             counted: time in which its process stood still, ran slowly, or
//             ran callbacks
//   P-F7      a waiting call hears of a failure within kSlackNanos; a callback
//             hears of the log's end too
//   P-INV-20  no call is OK that began after a client was told of a failure
// Not seen: calls that never return. A log that never comes to rest breaks
// P-C8.
// Thread safety: one thread.
// References: protocol P-A3, P-H20; api/include/alpheus/log.h.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_CALL_JUDGE_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_CALL_JUDGE_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

enum class ClientCall {
  kReserve,
  kCopy,
  kComplete,
  kAppend,
  kForce,
  kBeginForce,
  kWaitDurable,
  kOnDurable,
  kOnEpochConfirmed,
  kConfirmEpoch,
  kCleanup,
  kCleanupThrough,
  kCleanupAll,
};

const char* CallName(ClientCall call);

// Call in progress.
struct BegunCall {
  ClientCall call = ClientCall::kReserve;
  Deadline deadline = {};
  // The calling thread may have open reservations.
  bool owns_open = false;
  int64_t began_ns = 0;
  bool is_after_a_failure = false;
};

class CallJudge {
 public:
  // Time that a call may need after its deadline.
  static constexpr int64_t kSlackNanos = 2'000'000;

  CallJudge(Oracle& oracle, const Clock& clock, uint32_t primary)
      : oracle_(oracle), clock_(clock), primary_(primary) {}

  BegunCall Begin(ClientCall call, Deadline deadline = {},
                  bool owns_open = false) const;
  // Judges a call that returned. `log_has_failed`: now; `steady_since`:
  // Threads::SteadySince of the client's process. `may_meet_damage`: the status
  // is DataLoss of a record that was damaged.
  void Returned(const BegunCall& call, Lsn lsn, const absl::Status& status,
                bool log_has_failed, int64_t steady_since,
                bool may_meet_damage = false);
  // Notes the log's failure: from now on waiting calls must hear of it.
  void LogFailed() {
    if (failed_ns_ == kNever) failed_ns_ = clock_.NowNanos();
  }
  // Callbacks run on threads of callers, so other calls have waited for them.
  void RanCallback() { ran_callback_ns_ = clock_.NowNanos(); }
  // Count callbacks: one was registered; one ran, or was refused.
  void RequestedNotice() { ++pending_notices_; }
  void Notified() { --pending_notices_; }
  // Notes that no callback runs any more. `how`: has failed, is gone.
  void LogEnded(const char* how);

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void JudgeStatus(const BegunCall& call, const absl::Status& status,
                   bool log_has_failed, bool may_meet_damage,
                   const std::string& text);
  void JudgeTime(const BegunCall& call, int64_t steady_since,
                 const std::string& text);

  Oracle& oracle_;
  const Clock& clock_;
  const uint32_t primary_;
  int64_t failed_ns_ = kNever;
  bool was_notified_ = false;  // a client was told of the failure
  int64_t ran_callback_ns_ = 0;
  int pending_notices_ = 0;  // callbacks that have not run
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CALL_JUDGE_H_
