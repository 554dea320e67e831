// SPDX-License-Identifier: Apache-2.0
// alpheus: the command line of the log. See commands.h and exit_status.h.
#include <cstdio>
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "tools/cli/commands/command_line.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/exit_status.h"
#include "tools/cli/io/standard_streams.h"

namespace alpheus::cli {
namespace {

ExitStatus Report(const absl::Status& status) {
  if (!status.ok()) {
    const std::string message(status.message());
    std::fprintf(stderr, "alpheus: %s [%s]\n", message.c_str(),
                 absl::StatusCodeToString(status.code()).c_str());
  }
  return ExitStatusOf(status.code());
}

ExitStatus Main(const std::vector<std::string>& words) {
  GuardStandardStreams();
  const std::variant<Command, ExitStatus> parsed =
      ParseCommandLine(words, std::cout, std::cerr);
  if (const auto* ended = std::get_if<ExitStatus>(&parsed)) {
    std::cout.flush();
    return std::cout ? *ended : ExitStatus::kFailed;
  }
  return Report(std::get<Command>(parsed)());
}

}  // namespace
}  // namespace alpheus::cli

int main(int argc, char** argv) {
  // Even the program's name may be missing.
  std::vector<std::string> words(argv, argv + argc);
  if (!words.empty()) words.erase(words.begin());
  return static_cast<int>(alpheus::cli::Main(words));
}
