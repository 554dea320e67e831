// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/epoch_install.h"

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {

absl::Status EpochInstall::Advance() {
  if (!is_stopping_) ALPHEUS_RETURN_IF_ERROR(Gather());
  return is_stopping_ ? runner_.Advance() : absl::OkStatus();
}

absl::Status EpochInstall::Gather() {
  wake_at_ = kNever;
  ALPHEUS_RETURN_IF_ERROR(runner_.Advance());
  const int64_t now = clock_.NowNanos();
  const bool late = options_.deadline.HasPassed(now);
  if (!runner_.is_enough()) {
    if (!late) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the deadline passed before W = ", options_.write_quorum,
        " replicas had installed",
        options_.is_change ? ", or as many as a change takes" : ""));
  }
  const uint64_t progress = runner_.progress();
  const bool got_on = progress != progress_;
  if (!gathered_at_ || got_on) gathered_at_ = now;
  progress_ = progress;
  // Where users wait, nobody who is not needed is waited for.
  const int64_t reading_ns =
      options_.gather_ns == 0 ? 0 : runner_.PatienceNanos();
  const int64_t until = *gathered_at_ + options_.gather_ns + reading_ns;
  if (!late && !runner_.is_over() && now < until) {
    wake_at_ = until;
    return absl::OkStatus();
  }
  runner_.Stop(absl::UnavailableError(
      "was too slow: the epoch was opened without it; let it resync"));
  is_stopping_ = true;
  return absl::OkStatus();
}

}  // namespace alpheus::recovery
