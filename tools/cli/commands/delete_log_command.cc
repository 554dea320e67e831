// SPDX-License-Identifier: Apache-2.0
// `alpheus delete-log`: deletes a cluster's log for good.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/admin/delete_log.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

struct DeleteLogArguments {
  LogSource source;
  uint32_t timeout_s = 60;
  bool yes = false;
};

// Has the name typed once more.
absl::Status Confirm(const DeleteLogArguments& arguments) {
  if (arguments.yes) return absl::OkStatus();
  const std::string& log = arguments.source.log;
  std::fprintf(stderr,
               "alpheus: all records of log %s will be deleted for good, on "
               "all nodes of %s.\nType the name of the log to go on: ",
               log.c_str(), arguments.source.cluster.c_str());
  std::string typed;
  std::getline(std::cin, typed);
  if (typed == log) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("log ", log,
                   ": its name was not typed, and nothing was done. A program "
                   "gives --yes"));
}

std::string NodesOf(const std::vector<uint64_t>& nodes) {
  if (nodes.empty()) return "no node";
  return absl::StrCat(nodes.size() == 1 ? "node " : "nodes ",
                      absl::StrJoin(nodes, ", "));
}

absl::Status RunDeleteLog(const DeleteLogArguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(Confirm(arguments));
  DeleteLogOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  options.timeout_ms = arguments.timeout_s * 1000;
  ALPHEUS_ASSIGN_OR_RETURN(const DeletedLog deleted, DeleteLog(options));
  std::string text =
      absl::StrCat(options.log_name, ": deleted; its records are removed from ",
                   NodesOf(deleted.removed));
  if (!deleted.left.empty()) {
    absl::StrAppend(&text, ", and not from ", NodesOf(deleted.left),
                    ": nodes that are down remove theirs when they are back. "
                    "Where that failed, the node says why, and tries it "
                    "again");
  }
  std::fprintf(stderr, "alpheus: %s\n", text.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddDeleteLogCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<DeleteLogArguments>();
  CLI::App* command = AddCommand(
      app, "delete-log",
      {.purpose = "Delete a cluster's log for good",
       .about =
           "Deletes all records of the log on all nodes, also while it is "
           "written. Nodes that are down remove theirs when they are back. No "
           "log of this name can be made again in this cluster. If the command "
           "fails, no record was removed; run it again, and it continues.",
       .failed = "anything else: no such log, the cluster file is wrong or "
                 "outdated, the name was not typed",
       .unavailable = "too few nodes can be reached; nothing was removed"});
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  FindOption(command, "--log").Required();
  AddFlag(command, "--yes", &arguments->yes,
          "Do not ask for the name of the log to be typed");
  AddOption(command, "--timeout", &arguments->timeout_s,
            "Seconds after which the command gives up")
      .Decimal()
      .Range(1u, 86'400u)
      .ShowDefault();
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunDeleteLog(*arguments));
    };
  });
}

}  // namespace alpheus::cli
