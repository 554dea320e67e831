// SPDX-License-Identifier: Apache-2.0
// verification: one whole pass over a region, for `inspect` and `verify`.
#ifndef ALPHEUS_TOOLS_CLI_VERIFY_VERIFICATION_H_
#define ALPHEUS_TOOLS_CLI_VERIFY_VERIFICATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "alpheus/log_reader.h"

namespace alpheus::cli {

struct Verification {
  RegionInfo info;
  VerifyReport report;
};

// Verifies the region; repeats it if a live writer reuses the bytes meanwhile.
// Errors: as LogReader::Open; the findings are in report.status.
absl::StatusOr<Verification> VerifyRegion(const std::string& file);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_VERIFY_VERIFICATION_H_
