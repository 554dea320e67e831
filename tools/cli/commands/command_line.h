// SPDX-License-Identifier: Apache-2.0
// command_line: from the words that a user typed to a command, ready to run.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_COMMAND_LINE_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_COMMAND_LINE_H_

#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include "tools/cli/commands/commands.h"
#include "tools/cli/io/exit_status.h"

namespace alpheus::cli {

// The command that `words` (without the program's name) ask for. Where there is
// none, help went to `output` (kGood) or what is wrong to `error` (kUsage).
std::variant<Command, ExitStatus> ParseCommandLine(
    const std::vector<std::string>& words, std::ostream& output,
    std::ostream& error);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_COMMAND_LINE_H_
