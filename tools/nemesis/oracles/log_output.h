// SPDX-License-Identifier: Apache-2.0
// log_output: parses the output of `alpheus cat`.
//
// Idea: payloads come framed, so that no byte of them can be misread; LSNs come
// as JSON. Both together are the records that the oracle judges.
//
// Thread safety: pure.
#ifndef ALPHEUS_TOOLS_NEMESIS_ORACLES_LOG_OUTPUT_H_
#define ALPHEUS_TOOLS_NEMESIS_ORACLES_LOG_OUTPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nemesis/oracles/recovery_oracle.h"

namespace alpheus::demo {

// Joins the output of `cat --framing len32` and of `cat --json` of the same
// log, with nothing appended in between. Errors: DataLoss (truncated,
// malformed, or of different lengths).
absl::StatusOr<std::vector<RecoveredRecord>> ParseRecords(
    const std::string& framed, const std::string& json_lines);

// Does the same if records may have been appended between the two: returns
// those in both.
absl::StatusOr<std::vector<RecoveredRecord>> ParseCommonRecords(
    const std::string& framed, const std::string& json_lines);

// Returns a member of the JSON object that `inspect` or `verify` printed. (The
// JSON library is slow to compile, so only log_output.cc includes it.)
// Errors: DataLoss (no object, or it has no such member).
absl::StatusOr<uint64_t> NumberIn(const std::string& json,
                                  const std::string& member);
absl::StatusOr<std::string> TextIn(const std::string& json,
                                   const std::string& member);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ORACLES_LOG_OUTPUT_H_
