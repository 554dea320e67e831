// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/call_judge.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {
namespace {

using Code = absl::StatusCode;

struct Row {
  const char* name;
  bool waits;      // for as long as its deadline lets it
  bool may_block;  // on reservations of its own thread
  bool knows_failure;
  bool walks;              // headers, if it has to move the head
  Code other = Code::kOk;  // one more error that it may have
};

constexpr std::array<Row, 13> kRows = {{
    {"reserve", true, true, true, true, Code::kResourceExhausted},
    // Touches memory that the caller has.
    {"copy", false, false, false, false},
    {"complete", false, false, true, false},
    {"append", true, true, true, true, Code::kResourceExhausted},
    {"force", true, true, true, false},
    {"begin to force", false, false, true, false},
    {"wait", true, true, true, false},
    {"ask to be told", false, false, true, false},
    {"ask for a confirmation", false, false, true, false},
    {"confirm", true, false, true, false},
    {"clean", false, false, true, true, Code::kNotFound},
    {"clean through", false, false, true, true},
    // Open reservations of anybody.
    {"clean everything", true, false, true, true, Code::kFailedPrecondition},
}};

const Row& RowOf(ClientCall call) { return kRows[static_cast<size_t>(call)]; }

bool SaysFailure(Code code) {
  return code == Code::kAborted || code == Code::kUnavailable;
}

}  // namespace

const char* CallName(ClientCall call) { return RowOf(call).name; }

BegunCall CallJudge::Begin(ClientCall call, Deadline deadline,
                           bool owns_open) const {
  return {call, deadline, owns_open, clock_.NowNanos(), was_notified_};
}

void CallJudge::Returned(const BegunCall& call, Lsn lsn,
                         const absl::Status& status, bool log_has_failed,
                         int64_t steady_since, bool may_meet_damage) {
  const std::string text =
      absl::StrCat(RowOf(call.call).name, " of primary ", primary_, ", LSN ",
                   lsn.value, ": ", status.ToString());
  JudgeStatus(call, status, log_has_failed, may_meet_damage, text);
  JudgeTime(call, steady_since, text);
  if (SaysFailure(status.code()) && log_has_failed) was_notified_ = true;
}

void CallJudge::JudgeStatus(const BegunCall& call, const absl::Status& status,
                            bool log_has_failed, bool may_meet_damage,
                            const std::string& text) {
  const Row& row = RowOf(call.call);
  const Code code = status.code();
  if (status.ok()) {
    if (call.is_after_a_failure && row.knows_failure) {
      oracle_.Violate("P-INV-20",
                      absl::StrCat(text, ", though the log had failed"));
    }
    return;
  }
  if (SaysFailure(code) && row.knows_failure && log_has_failed) return;
  if (code == row.other) return;
  if (code == Code::kDataLoss && row.walks && may_meet_damage) return;
  if (code == Code::kDeadlineExceeded && row.waits &&
      call.deadline.HasPassed(clock_.NowNanos())) {
    return;
  }
  // An append that is written and can't be forced is Cancelled.
  if (row.may_block && call.owns_open &&
      (code == Code::kFailedPrecondition ||
       (code == Code::kCancelled && call.call == ClientCall::kAppend))) {
    return;
  }
  oracle_.Violate("API",
                  absl::StrCat(text, log_has_failed ? " (the log has failed)"
                                                    : " (the log is well)"));
}

void CallJudge::LogEnded(const char* how) {
  if (pending_notices_ == 0) return;
  oracle_.Violate("P-F7", absl::StrCat("the log of primary ", primary_, " has ",
                                       how, ", and ", pending_notices_,
                                       " callbacks were not told of it"));
}

void CallJudge::JudgeTime(const BegunCall& call, int64_t steady_since,
                          const std::string& text) {
  if (steady_since == kNever) return;
  int64_t due = std::max({call.began_ns, steady_since, ran_callback_ns_});
  const char* invariant = "P-A3";
  if (RowOf(call.call).waits) {
    const int64_t until =
        call.deadline.is_set() ? call.deadline.at_nanos() : kNever;
    if (failed_ns_ < until) invariant = "P-F7";
    const int64_t ends = std::min(until, failed_ns_);
    if (ends == kNever) return;
    due = std::max(due, ends);
  }
  const int64_t late = clock_.NowNanos() - due;
  if (late <= kSlackNanos) return;
  oracle_.Violate(
      invariant, absl::StrCat(text, ", ", late, " ns after it had to be over"));
}

}  // namespace alpheus::sim
