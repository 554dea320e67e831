// SPDX-License-Identifier: Apache-2.0
// alpheus: the command line of the log. See commands.h and exit_status.h.
#include <cstdio>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "tools/cli/commands.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/standard_streams.h"

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
  AddInspectCommand(app, chosen);
  AddVerifyCommand(app, chosen);
  AddCleanupCommand(app, chosen);
  AddSalvageCommand(app, chosen);
  AddBenchCommand(app, chosen);
}

// Of the parser: 0 is --help, everything else a bad command line.
ExitStatus Report(const CLI::App& app, const CLI::ParseError& error) {
  // The parser itself would only say that a command is missing.
  for (const std::string& word : app.remaining()) {
    std::fprintf(stderr, "alpheus: '%s' is no command\n", word.c_str());
  }
  const int code = app.exit(error);
  std::cout.flush();
  if (!std::cout) return ExitStatus::kFailed;
  return code == 0 ? ExitStatus::kGood : ExitStatus::kUsage;
}

ExitStatus Report(const absl::Status& status) {
  if (!status.ok()) {
    const std::string message(status.message());
    std::fprintf(stderr, "alpheus: %s [%s]\n", message.c_str(),
                 absl::StatusCodeToString(status.code()).c_str());
  }
  return ExitStatusOf(status.code());
}

ExitStatus Main(int argc, char** argv) {
  GuardStandardStreams();
  CLI::App app("A write-ahead log in persistent memory.", "alpheus");
  Command chosen;
  AddCommands(&app, &chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return Report(app, error);
  }
  return Report(chosen());
}

}  // namespace
}  // namespace alpheus::cli

int main(int argc, char** argv) {
  return static_cast<int>(alpheus::cli::Main(argc, argv));
}
