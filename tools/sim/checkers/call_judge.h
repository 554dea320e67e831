// SPDX-License-Identifier: Apache-2.0
// call_judge: whether what the log answers its clients is what it may answer.
//
// Idea: each call has a row in a table: which errors it may have, as log.h
// says. Beyond that the log must not call itself failed before it has, nor say
// OK of anything once a client was told that it has failed, and a call is over
// soon after its deadline.
//
// What is held, of one primary's log:
//   API       errors as log.h names them; Unavailable and Aborted only of a log
//             that has failed; DeadlineExceeded only behind the deadline; a
//             precondition of the caller's own reservations only if it has some
//   P-A3      a call returns within its deadline and kSlackNanos, one without a
//             deadline that waits for nobody within kSlackNanos, unless its
//             process stood still or ran slowly meanwhile, or ran callbacks
//   P-F7      who waits hears within kSlackNanos that the log has failed; who
//             asked to be told of a record is told of the log's end, too
//   P-INV-20  no call is OK that began behind a failure that a client was told
//             of
// What it can't see: calls that never return; a log that never comes to rest is
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
#include "tools/sim/world/referee.h"

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
  kCleanup,
  kCleanupThrough,
  kCleanupAll,
};

const char* CallName(ClientCall call);

// A call under way.
struct BegunCall {
  ClientCall call = ClientCall::kReserve;
  Deadline deadline = {};
  // The calling thread may have open reservations.
  bool owns_open = false;
  int64_t began_ns = 0;
  bool is_behind_a_failure = false;
};

class CallJudge {
 public:
  // What a call may need behind its deadline.
  static constexpr int64_t kSlackNanos = 2'000'000;

  CallJudge(Referee& referee, const Clock& clock, uint32_t primary)
      : referee_(referee), clock_(clock), primary_(primary) {}

  BegunCall Begin(ClientCall call, Deadline deadline = {},
                  bool owns_open = false) const;
  // It returned. `log_has_failed`: now; `steady_since`: as Threads::SteadySince
  // of the client's process.
  void Returned(const BegunCall& call, Lsn lsn, const absl::Status& status,
                bool log_has_failed, int64_t steady_since);
  // From now on whoever waits is to hear of the log's failure.
  void LogFailed() {
    if (failed_ns_ == kNever) failed_ns_ = clock_.NowNanos();
  }
  // Callbacks run on threads of whoever calls: those have waited for it.
  void RanCallback() { ran_callback_ns_ = clock_.NowNanos(); }
  // Somebody asks to be told of a record; and is told, or was refused.
  void AskedToBeTold() { ++untold_; }
  void Told() { --untold_; }
  // Nobody is told any more. `how`: has failed, is gone.
  void LogEnded(const char* how);

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  void JudgeStatus(const BegunCall& call, const absl::Status& status,
                   bool log_has_failed, const std::string& text);
  void JudgeTime(const BegunCall& call, int64_t steady_since,
                 const std::string& text);

  Referee& referee_;
  const Clock& clock_;
  const uint32_t primary_;
  int64_t failed_ns_ = kNever;
  bool was_told_ = false;  // a client, that the log has failed
  int64_t ran_callback_ns_ = 0;
  int untold_ = 0;  // that asked to be told
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_CALL_JUDGE_H_
