// SPDX-License-Identifier: Apache-2.0
// progress: one line on standard error that says how far long work is.
//
// Shown only if standard error is a terminal, a few times a second, and wiped
// when the work ends, so that logs and pipes never see it.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_IO_PROGRESS_H_
#define ALPHEUS_TOOLS_CLI_IO_PROGRESS_H_

#include <cstdint>
#include <string>

#include "log/base/clock.h"

namespace alpheus::cli {

class ProgressLine {
 public:
  // `work` says what is going on, in the form "appending".
  explicit ProgressLine(std::string work, const Clock& clock = Clock::Real());
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Cheap enough to be called for each record.
  void ShowFraction(double fraction);  // 0 to 1
  void ShowCount(uint64_t records);

 private:
  bool IsDue();
  void Show(const std::string& text);

  const std::string work_;
  const Clock& clock_;
  const bool enabled_;
  bool shown_ = false;
  uint32_t calls_ = 0;
  int64_t next_nanos_ = 0;
};

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_PROGRESS_H_
