// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::cli {
namespace {

constexpr int64_t kIntervalNanos = 200'000'000;
// Calls per reading of the clock.
constexpr uint32_t kCallsPerCheck = 64;

}  // namespace

ProgressLine::ProgressLine(std::string work, const Clock& clock)
    : work_(std::move(work)),
      clock_(clock),
      enabled_(isatty(STDERR_FILENO) == 1) {
  // Work that is over within one interval shows nothing.
  if (enabled_) next_nanos_ = clock_.NowNanos() + kIntervalNanos;
}

ProgressLine::~ProgressLine() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void ProgressLine::ShowFraction(double fraction) {
  if (!enabled_) return;
  calls_ = 0;  // such calls are rare: look at the clock each time
  if (IsDue()) {
    Show(absl::StrCat(static_cast<int>(fraction * 100), " %"));
  }
}

void ProgressLine::ShowCount(uint64_t records) {
  if (enabled_ && IsDue()) Show(absl::StrCat(records, " records"));
}

bool ProgressLine::IsDue() {
  if (calls_++ % kCallsPerCheck != 0) return false;
  const int64_t now = clock_.NowNanos();
  if (now < next_nanos_) return false;
  next_nanos_ = now + kIntervalNanos;
  return true;
}

void ProgressLine::Show(const std::string& text) {
  std::fprintf(stderr, "\r\x1b[Kalpheus: %s: %s", work_.c_str(), text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace alpheus::cli
