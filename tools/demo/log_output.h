// SPDX-License-Identifier: Apache-2.0
// log_output: understands what `alpheus cat` prints.
//
// Idea: payloads come framed, so that no byte of them can be misread; LSNs come
// as JSON. Both together are the records that the oracle judges.
//
// Thread safety: pure.
#ifndef ALPHEUS_TOOLS_DEMO_LOG_OUTPUT_H_
#define ALPHEUS_TOOLS_DEMO_LOG_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/demo/recovery_oracle.h"

namespace alpheus::demo {

// From the output of `cat --framing len32` and of `cat --json`, of the same
// log, with nothing appended in between.
// Errors: DataLoss (cut off, not to be understood, or of different lengths).
absl::StatusOr<std::vector<RecoveredRecord>> ParseRecords(
    const std::string& framed, const std::string& json_lines);

// The same when records may have been appended between the two: as many as
// both have.
absl::StatusOr<std::vector<RecoveredRecord>> ParseCommonRecords(
    const std::string& framed, const std::string& json_lines);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_DEMO_LOG_OUTPUT_H_
