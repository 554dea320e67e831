// SPDX-License-Identifier: Apache-2.0
// commands: the subcommands of `alpheus`, one file each.
//
// Each Add...Command declares its options on the parser; parsing its name puts
// the command, ready to run, into *chosen. Commands return a status, which
// main() turns into message and exit status (exit_status.h). Results go to
// standard output, everything else to standard error.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_COMMANDS_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_COMMANDS_H_

#include <functional>

#include "absl/status/status.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace alpheus::cli {

using Command = std::function<absl::Status()>;

void AddFormatCommand(CLI::App* app, Command* chosen);
void AddAppendCommand(CLI::App* app, Command* chosen);
void AddCatCommand(CLI::App* app, Command* chosen);
void AddTailCommand(CLI::App* app, Command* chosen);
void AddInspectCommand(CLI::App* app, Command* chosen);
void AddStatusCommand(CLI::App* app, Command* chosen);
void AddVerifyCommand(CLI::App* app, Command* chosen);
void AddScrubCommand(CLI::App* app, Command* chosen);
void AddCleanupCommand(CLI::App* app, Command* chosen);
void AddExportWalCommand(CLI::App* app, Command* chosen);
void AddBackupCommand(CLI::App* app, Command* chosen);
void AddSalvageCommand(CLI::App* app, Command* chosen);
void AddReplaceCommand(CLI::App* app, Command* chosen);
void AddReconfigureCommand(CLI::App* app, Command* chosen);
void AddDeleteLogCommand(CLI::App* app, Command* chosen);
void AddElectCommand(CLI::App* app, Command* chosen);
void AddDrainCommand(CLI::App* app, Command* chosen);
void AddKvCommand(CLI::App* app, Command* chosen);
void AddKeyCommand(CLI::App* app, Command* chosen);
void AddTokenCommand(CLI::App* app, Command* chosen);
void AddBenchCommand(CLI::App* app, Command* chosen);
void AddPlanCommand(CLI::App* app, Command* chosen);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_COMMANDS_H_
