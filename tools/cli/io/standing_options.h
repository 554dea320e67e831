// SPDX-License-Identifier: Apache-2.0
// standing_options: how a process stands for primary, on the command lines of
// all programs that do.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_IO_STANDING_OPTIONS_H_
#define ALPHEUS_TOOLS_CLI_IO_STANDING_OPTIONS_H_

#include <cstdint>

#include "alpheus/candidate.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {

// As in CandidateOptions.
struct StandingArguments {
  uint32_t priority = CandidateOptions().priority;
  uint32_t silence_ms = CandidateOptions().silence_ms;
  uint32_t silence_ms_max = CandidateOptions().silence_ms_max;
  uint32_t heartbeat_ms = CandidateOptions().heartbeat_ms;
};

// Adds --priority and the times of an election. Requires: the command has
// --stand, which they need.
void AddStandingOptions(CLI::App* command, StandingArguments* arguments);

// Sets these options. A silence that is longer than its most is the most.
void SetStanding(const StandingArguments& arguments, CandidateOptions* options);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_IO_STANDING_OPTIONS_H_
