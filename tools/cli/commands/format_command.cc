// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

struct FormatArguments {
  LogSource source;
  std::string size = "64MiB";
  uint32_t timeout_ms = 30'000;  // as in FormatOptions
};

absl::Status RunFormat(const FormatArguments& arguments) {
  const LogSource& source = arguments.source;
  FormatOptions options;
  options.path = source.file;
  options.cluster_file = source.cluster;
  options.log_name = source.log;
  options.timeout_ms = arguments.timeout_ms;
  ALPHEUS_ASSIGN_OR_RETURN(options.region_bytes, ParseSize(arguments.size));
  ALPHEUS_ASSIGN_OR_RETURN(const Uuid log_id, Log::Format(options));
  std::fprintf(stderr, "alpheus: %s: formatted\n",
               source.is_cluster() ? source.log.c_str() : source.file.c_str());
  return WriteAll(STDOUT_FILENO, absl::StrCat(log_id.ToString(), "\n"));
}

}  // namespace

void AddFormatCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<FormatArguments>();
  CLI::App* command =
      AddCommand(app, "format",
                 {.purpose = "Create a new, empty log",
                  .about = "Creates a region, or all replicas of a cluster's "
                           "new log. Refuses to overwrite a log that exists. "
                           "Prints the log's identity, 32 hexadecimal digits.",
                  .failed = "anything else: the log exists, no space left"});
  AddFormatSourceOptions(command, &arguments->source);
  AddOption(
      command, "--size", &arguments->size,
      "Size of the region, as in 64MiB or 1GB; 0 means all of a DAX device")
      .ShowDefault();
  AddOption(command, "--timeout-ms", &arguments->timeout_ms,
            "How long to wait for the nodes of the cluster, in all")
      .Needs(FindOption(command, "--cluster"))
      .Decimal()
      .Range(uint32_t{1}, kTimeoutMillisMax)
      .ShowDefault();
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunFormat(*arguments); };
  });
}

}  // namespace alpheus::cli
