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
#include "tools/cli/reports/membership_problem.h"
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
  absl::StatusOr<ClusterStatus> taken = [&arguments] {
    const WaitNotice notice(
        arguments.source,
        absl::StrCat("it gives up on a silent node after ",
                     arguments.options.timeout_ms, " ms (--timeout-ms)"));
    return TakeStatus(arguments.source, arguments.options);
  }();
  ALPHEUS_RETURN_IF_ERROR(taken.status());
  ClusterStatus& status = *taken;
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::string problem,
      MembershipProblem(arguments.source, arguments.options.timeout_ms));
  if (!problem.empty()) status.warnings.push_back(problem);
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
  CLI::App* command = AddCommand(
      app, "status",
      {.purpose = "Show the state of a cluster's log",
       .about = "Shows the primary, the replicas that are in sync, and whether "
                "enough of them are served to open the log. Shows how full the "
                "ring is and when it will be full. Shows the epoch, promise, "
                "head and watermark of each replica. Reads only.\n"
                "While a primary writes the log, its own replica and those "
                "that it is connected to can be in sync. Without a primary, "
                "all in the newest epoch are.\n"
                "Shows until when the certificates of nodes are good that "
                "encrypt.\n"
                "Warns on standard error before the ring or the table of "
                "openings is full, 14 days before a certificate expires, and "
                "if ZooKeeper is of no use.",
       .good = "W replicas are in sync, and the log could be opened again",
       .failed =
           "the cluster file is wrong, or older than the members; no node has "
           "such a log; a node has the file of another log or node in its "
           "place; the table of openings is full; or anything else",
       .data_loss = "a replica is damaged, as far as its node knows from "
                    "scrubs and openings, even if W are in sync",
       .unavailable = "fewer than W replicas are in sync, or fewer are served "
                      "than an opening takes"});
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddOption(command, "--sample-ms", &arguments->options.sample_ms,
            "How long to watch a log that is being written, to estimate when "
            "its ring will be full; 0: not at all")
      .Decimal()
      .Range(uint32_t{0}, uint32_t{60'000})
      .ShowDefault();
  AddTimeoutOption(command, &arguments->options.timeout_ms);
  AddFlag(command, "--all", &arguments->all,
          "Exit status 0 only if all replicas are whole, and served by their "
          "nodes");
  AddFlag(command, "--json", &arguments->json,
          "Print one JSON object instead of text");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunStatus(*arguments));
    };
  });
}

}  // namespace alpheus::cli
