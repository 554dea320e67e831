// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/status_macros.h"
#include "tools/cli/arguments.h"
#include "tools/cli/commands.h"
#include "tools/cli/standard_streams.h"

namespace alpheus::cli {
namespace {

struct FormatArguments {
  std::string file;
  std::string size = "64MiB";
};

absl::Status RunFormat(const FormatArguments& arguments) {
  FormatOptions options;
  options.path = arguments.file;
  ALPHEUS_ASSIGN_OR_RETURN(options.region_bytes, ParseSize(arguments.size));
  ALPHEUS_ASSIGN_OR_RETURN(const Uuid log_id, Log::Format(options));
  std::fprintf(stderr, "alpheus: %s: formatted\n", arguments.file.c_str());
  return WriteAll(STDOUT_FILENO, absl::StrCat(log_id.ToString(), "\n"));
}

}  // namespace

void AddFormatCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<FormatArguments>();
  CLI::App* command = app->add_subcommand(
      "format",
      "Create the region of a new, empty log. Refuses a file that exists. "
      "Prints the log's identity, 32 hexadecimal digits.");
  AddFileOption(command, &arguments->file);
  command
      ->add_option("--size", arguments->size,
                   "Size of the region, as in 64MiB or 1GB; 0 with a DAX "
                   "device: all of it")
      ->capture_default_str();
  command->callback([arguments, chosen] {
    *chosen = [arguments] { return RunFormat(*arguments); };
  });
}

}  // namespace alpheus::cli
