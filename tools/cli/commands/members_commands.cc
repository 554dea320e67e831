// SPDX-License-Identifier: Apache-2.0
// `alpheus replace` and `alpheus reconfigure`: change the members of a
// cluster's log.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/source/wait_notice.h"

namespace alpheus::cli {
namespace {

struct MembersArguments {
  LogSource source;
  std::string from;
  std::vector<uint64_t> nodes;
  uint32_t timeout_s = 60;
  uint32_t gather_ms = ChangeMembersOptions().gather_ms;
};

std::string Describe(const std::string& log, const RecoveryReport& report) {
  std::string text = absl::StrCat(
      log, ": the members hold LSN ", report.head_lsn.value, " to ",
      report.end_lsn.value, " in epoch ", report.epoch.value);
  if (report.was_running) {
    absl::StrAppend(&text, "; the program that has the log open goes on");
  }
  for (const std::string& repair : report.repairs) {
    absl::StrAppend(&text, "; ", repair);
  }
  for (const std::string& absent : report.absent_members) {
    absl::StrAppend(&text, "; not in this epoch yet: ", absent);
  }
  return text;
}

absl::Status RunChange(const MembersArguments& arguments) {
  ChangeMembersOptions options;
  options.cluster_file = arguments.source.cluster;
  options.previous_cluster_file = arguments.from;
  options.replaced = arguments.nodes;
  options.log_name = arguments.source.log;
  options.timeout_ms = arguments.timeout_s * 1000;
  options.gather_ms = arguments.gather_ms;
  const WaitNotice notice(
      arguments.source, absl::StrCat("it gives up after ", arguments.timeout_s,
                                     " s in all (--timeout)"));
  ALPHEUS_ASSIGN_OR_RETURN(const RecoveryReport report,
                           Log::ChangeMembers(options));
  std::fprintf(stderr, "alpheus: %s\n",
               Describe(options.log_name, report).c_str());
  return absl::OkStatus();
}

// For an unknown log the previous members are asked.
absl::Status ExplainChange(const MembersArguments& arguments) {
  const absl::Status changed = RunChange(arguments);
  LogSource before = arguments.source;
  if (!arguments.from.empty()) before.cluster = arguments.from;
  const absl::Status explained = Explain(before, changed);
  return absl::IsNotFound(explained) ? explained
                                     : Explain(arguments.source, changed);
}

// Adds the options of both commands.
CLI::App* AddMembersCommand(CLI::App* app, const char* name,
                            const CommandHelp& help,
                            const std::shared_ptr<MembersArguments>& arguments,
                            Command* chosen) {
  CLI::App* command = AddCommand(app, name, help);
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddOption(command, "--timeout", &arguments->timeout_s,
            "Seconds after which the command gives up. The log is copied to "
            "each node that joins: allow time for that")
      .Decimal()
      .Range(1u, 86'400u)
      .ShowDefault();
  AddOption(command, "--gather-ms", &arguments->gather_ms,
            "Milliseconds to wait for more members once enough have answered. "
            "One that misses the change is named; it joins once a program "
            "has the log open, and until then do not stop others")
      .Decimal()
      .ShowDefault();
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return ExplainChange(*arguments); };
  });
  return command;
}

}  // namespace

void AddReplaceCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<MembersArguments>();
  CLI::App* command = AddMembersCommand(
      app, "replace",
      {.purpose = "Replace a replica that was lost with its medium",
       .about = "The node, which must run, gets a new copy of the log. A "
                "program that has the log open, with its node's replica, goes "
                "on after a pause; another one must open it again.",
       .failed = "anything else: a file is wrong or outdated, the change is "
                 "not possible"},
      arguments, chosen);
  AddOption(command, "--node", &arguments->nodes,
            "Node of the lost replica; may be given several times")
      .Required()
      .Decimal();
}

void AddReconfigureCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<MembersArguments>();
  CLI::App* command = AddMembersCommand(
      app, "reconfigure",
      {.purpose = "Change the members of a log, or its W",
       .about =
           "Changes the members, or how many of them must have each record "
           "(W), to those in the cluster file. Its configuration_id must be "
           "higher than that of the previous file.\n"
           "A program that has the log open, with its node's replica, goes on "
           "after a pause. Another one, or one whose node leaves, must open it "
           "again, with the new file. If the command is interrupted, run it "
           "again: it continues.",
       .failed = "anything else: a file is wrong or outdated, the change is "
                 "not possible"},
      arguments, chosen);
  AddOption(command, "--from", &arguments->from,
            "Cluster file that the log has used until now")
      .Required();
}

}  // namespace alpheus::cli
