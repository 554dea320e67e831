// SPDX-License-Identifier: Apache-2.0
// membership_problem: tells whether the membership service that a cluster's
// file names can be used from here.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_REPORTS_MEMBERSHIP_PROBLEM_H_
#define ALPHEUS_TOOLS_CLI_REPORTS_MEMBERSHIP_PROBLEM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {

// Connects to the service, and reads what it says of the log. Returns why it is
// of no use, as a sentence without its full stop; empty: it is, or the cluster
// has none. May block, up to `timeout_ms`. Errors: those of the cluster file.
absl::StatusOr<std::string> MembershipProblem(const LogSource& source,
                                              uint32_t timeout_ms);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_REPORTS_MEMBERSHIP_PROBLEM_H_
