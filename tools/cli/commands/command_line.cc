// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/commands/command_line.h"

#include "tools/cli/io/parser.h"

namespace alpheus::cli {
namespace {

constexpr char kFooter[] =
    "\nExit status (`alpheus COMMAND --help` says more):\n"
    "  0  good\n"
    "  1  failed\n"
    "  2  bad usage\n"
    "  3  corruption or data loss\n"
    "  4  medium, quorum or node unavailable\n";

void AddCommands(CLI::App* app, Command* chosen) {
  RequireSubcommand(app);
  AddFormatCommand(app, chosen);
  AddAppendCommand(app, chosen);
  AddCatCommand(app, chosen);
  AddTailCommand(app, chosen);
  AddStatusCommand(app, chosen);
  AddInspectCommand(app, chosen);
  AddVerifyCommand(app, chosen);
  AddScrubCommand(app, chosen);
  AddCleanupCommand(app, chosen);
  AddExportWalCommand(app, chosen);
  AddBackupCommand(app, chosen);
  AddSalvageCommand(app, chosen);
  AddReplaceCommand(app, chosen);
  AddReconfigureCommand(app, chosen);
  AddDeleteLogCommand(app, chosen);
  AddElectCommand(app, chosen);
  AddDrainCommand(app, chosen);
  AddKvCommand(app, chosen);
  AddKeyCommand(app, chosen);
  AddTokenCommand(app, chosen);
  AddBenchCommand(app, chosen);
  AddPlanCommand(app, chosen);
}

}  // namespace

std::variant<Command, ExitStatus> ParseCommandLine(
    const std::vector<std::string>& words, std::ostream& output,
    std::ostream& error) {
  if (!words.empty() && words.front() == "sim") {
    error << "alpheus: the simulator is a program of its own: alpheus-sim\n";
    return ExitStatus::kUsage;
  }
  Parser parser("A write-ahead log in persistent memory.", "alpheus");
  parser.Footer(kFooter);
  Command chosen;
  AddCommands(parser.app(), &chosen);
  if (const auto end = parser.Parse(words, output, error)) return *end;
  return chosen;
}

}  // namespace alpheus::cli
