// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/verify/verification.h"

#include <memory>

#include "log/base/status_macros.h"
#include "tools/cli/io/progress.h"

namespace alpheus::cli {
namespace {

// Passes. A writer that reuses the whole ring during each of them is not worth
// waiting for.
constexpr int kPassesMax = 100;

}  // namespace

absl::StatusOr<Verification> VerifyRegion(const std::string& file) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           LogReader::Open(file));
  ProgressLine progress("verifying");
  Verification result;
  int passes = 0;
  do {
    result.report =
        reader->Verify([&](double done) { progress.ShowFraction(done); });
  } while (absl::IsOutOfRange(result.report.status) && ++passes < kPassesMax);
  result.info = reader->info();
  return result;
}

}  // namespace alpheus::cli
