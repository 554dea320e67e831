// SPDX-License-Identifier: Apache-2.0
// exit_status: what the exit status of `alpheus` means, for scripts.
//
//   0  good        the command did all that was asked
//   1  failed      anything that is not below: no such file, region in use,
//                  ring full, input cut off, standard output closed
//   2  usage       the command line, or a value on it, can never be right
//   3  data loss   corruption, or records that can't be read any more
//   4  unavailable medium, quorum or peer can't be reached; after `append` the
//                  outcome of the last records is unknown
//
// Part of the interface: never renumber.
#ifndef ALPHEUS_TOOLS_CLI_IO_EXIT_STATUS_H_
#define ALPHEUS_TOOLS_CLI_IO_EXIT_STATUS_H_

#include "absl/status/status.h"

namespace alpheus::cli {

enum class ExitStatus : int {
  kGood = 0,
  kFailed = 1,
  kUsage = 2,
  kDataLoss = 3,
  kUnavailable = 4,
};

// The one place where a status becomes an exit status.
constexpr ExitStatus ExitStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ExitStatus::kGood;
    case absl::StatusCode::kInvalidArgument:
      return ExitStatus::kUsage;
    case absl::StatusCode::kDataLoss:
      return ExitStatus::kDataLoss;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    // Too few replicas are in sync: the log must be opened again (P-A3.6).
    case absl::StatusCode::kAborted:
      return ExitStatus::kUnavailable;
    default:
      return ExitStatus::kFailed;
  }
}

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_EXIT_STATUS_H_
