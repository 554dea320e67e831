// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/command_line.h"

#include "CLI/CLI.hpp"

namespace alpheus::cli {
namespace {

constexpr char kFooter[] =
    "\nExit status: 0 good; 1 failed; 2 bad usage; 3 corruption or data loss;\n"
    "4 medium or quorum unavailable.\n";

void AddCommands(CLI::App* app, Command* chosen) {
  app->require_subcommand(1);
  app->fallthrough(false);
  app->footer(kFooter);
  AddFormatCommand(app, chosen);
  AddAppendCommand(app, chosen);
  AddCatCommand(app, chosen);
  AddTailCommand(app, chosen);
  AddStatusCommand(app, chosen);
  AddInspectCommand(app, chosen);
  AddVerifyCommand(app, chosen);
  AddScrubCommand(app, chosen);
  AddCleanupCommand(app, chosen);
  AddSalvageCommand(app, chosen);
  AddReplaceCommand(app, chosen);
  AddReconfigureCommand(app, chosen);
  AddKeyCommand(app, chosen);
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
  CLI::App app("A write-ahead log in persistent memory.", "alpheus");
  Command chosen;
  AddCommands(&app, &chosen);
  try {
    // The parser takes words from the end of a vector.
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& refusal) {
    const bool wants_help = refusal.get_exit_code() == 0;
    if (!wants_help) {
      // The parser itself would only say that a command is missing.
      for (const std::string& word : app.remaining()) {
        error << "alpheus: '" << word << "' is no command\n";
      }
    }
    app.exit(refusal, output, error);
    return wants_help ? ExitStatus::kGood : ExitStatus::kUsage;
  }
  return chosen;
}

}  // namespace alpheus::cli
