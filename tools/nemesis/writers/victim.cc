// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/writers/victim.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/processes/millis.h"

namespace alpheus::demo {
namespace {

// Time without an acknowledgement or an end after which a victim hangs.
// Generous: the machine may be busy with other things.
constexpr int64_t kSilenceNanosMax = 60 * kNanosPerSecond;

}  // namespace

Victim::Victim(ChildProcess* child, const Feed* feed, uint64_t first_number,
               const KillPlan& plan, const Clock& clock)
    : child_(*child),
      clock_(clock),
      plan_(plan),
      writer_(child, feed, first_number,
              {.ring_bytes_max = plan.ring_bytes_max}, clock) {}

absl::StatusOr<KillOutcome> Victim::RunUntilKilled() {
  const int64_t start_nanos = clock_.NowNanos();
  if (plan_.ack_count == 0) kill_at_nanos_ = start_nanos + plan_.delay_nanos;
  writer_.FillInput();
  while (!IsTimeToKill()) {
    if (kill_at_nanos_) {
      SleepUntilKill();
      continue;
    }
    if (!writer_.ListenAndFeed(kNanosPerSecond)) break;
    ALPHEUS_RETURN_IF_ERROR(writer_.ReadAcknowledgements());
    PlanKill(clock_.NowNanos());
  }
  child_.Kill();
  outcome_.alive_nanos = clock_.NowNanos() - start_nanos;
  const ProcessEnd end = child_.Wait();
  writer_.DrainAfterDeath();
  ALPHEUS_RETURN_IF_ERROR(writer_.ReadAcknowledgements());
  CheckDeath(end);
  outcome_.fed_count = writer_.fed_count();
  outcome_.acknowledgements = writer_.acknowledgements();
  return std::move(outcome_);
}

bool Victim::IsTimeToKill() {
  const int64_t now = clock_.NowNanos();
  if (kill_at_nanos_) return now >= *kill_at_nanos_;
  if (now - writer_.last_ack_nanos() < kSilenceNanosMax) return false;
  outcome_.misbehaviour = absl::StrCat(
      "acknowledged nothing for ", kSilenceNanosMax / kNanosPerSecond, " s");
  return true;
}

void Victim::PlanKill(int64_t now) {
  const size_t acknowledged = writer_.acknowledgements().size();
  if (!first_ack_nanos_ && acknowledged > 0) first_ack_nanos_ = now;
  if (kill_at_nanos_ || !first_ack_nanos_) return;
  const bool enough = acknowledged >= plan_.ack_count;
  const bool late = now - *first_ack_nanos_ >= plan_.wait_nanos_max;
  if (enough || late) kill_at_nanos_ = now + plan_.delay_nanos;
}

void Victim::SleepUntilKill() {
  const int64_t nanos =
      std::max<int64_t>(*kill_at_nanos_ - clock_.NowNanos(), 0);
  const timespec wait = {nanos / kNanosPerSecond, nanos % kNanosPerSecond};
  ppoll(nullptr, 0, &wait, nullptr);
}

void Victim::CheckDeath(const ProcessEnd& end) {
  if (end.signal != SIGKILL && !outcome_.misbehaviour) {
    outcome_.misbehaviour = "ended before it was killed";
  }
  if (!outcome_.misbehaviour) return;
  absl::StrAppend(&*outcome_.misbehaviour, " (", end.ToString(),
                  "): ", writer_.said());
}

}  // namespace alpheus::demo
