// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/reports/cluster_status.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/source/wait_notice.h"

namespace alpheus::cli {
namespace {

struct StatusArguments {
  LogSource source;
  StatusOptions options;
  bool json = false;
  bool all = false;
};

absl::Status RunStatus(const StatusArguments& arguments) {
  const absl::StatusOr<ClusterStatus> taken = [&arguments] {
    const WaitNotice notice(
        arguments.source,
        absl::StrCat("one that is silent is given up after ",
                     arguments.options.timeout_ms, " ms (--timeout-ms)"));
    return TakeStatus(arguments.source, arguments.options);
  }();
  ALPHEUS_RETURN_IF_ERROR(taken.status());
  const ClusterStatus& status = *taken;
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, arguments.json
                                                      ? ToLine(status.ToJson())
                                                      : status.ToText()));
  const absl::Status verdict =
      arguments.all ? status.VerdictOfAll() : status.Verdict();
  for (const std::string& warning : status.warnings) {
    // The verdict may be the same.
    if (absl::StrContains(verdict.message(), warning)) continue;
    std::fprintf(stderr, "alpheus: warning: %s\n", warning.c_str());
  }
  return verdict;
}

}  // namespace

void AddStatusCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = AddSubcommand(
      app, "status",
      "Show who is primary of a cluster's log, who is in sync, how full the "
      "ring is and when it will be full, whether enough replicas are served to "
      "open it, and what each replica says of itself: epoch, promise, head, "
      "watermark. Reads only. Exit status 0 if W replicas are in sync: with "
      "the primary, its own one included, or all in the newest epoch if "
      "nobody writes the log; and if the log could be opened again. 4 if fewer "
      "are, or fewer are served than an opening takes; 3 if one is damaged as "
      "far as its node knows from scrubs and openings, whoever else is in "
      "sync; 1 if the cluster file is wrong, or older than the members, if no "
      "node has such a log, if a node has another log's or node's file in its "
      "place, or if the table of openings is full. Warns on standard error "
      "before "
      "the ring is full, or the table "
      "of openings.");
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddOption(command, "--sample-ms", &arguments->options.sample_ms,
            "How long to watch a log that is being written, to say when its "
            "ring will be full; 0: not at all")
      .Decimal()
      .Range(uint32_t{0}, uint32_t{60'000})
      .ShowDefault();
  AddOption(command, "--timeout-ms", &arguments->options.timeout_ms,
            "A node that sends nothing for so long is given up; all are asked "
            "at once")
      .Decimal()
      .Range(uint32_t{1}, uint32_t{3'600'000})
      .ShowDefault();
  AddFlag(command, "--all", &arguments->all,
          "Exit status 0 only if all replicas are served by their nodes, and "
          "whole");
  AddFlag(command, "--json", &arguments->json, "One JSON object");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunStatus(*arguments));
    };
  });
}

}  // namespace alpheus::cli
