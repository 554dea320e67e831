// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/log/cluster_backup.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

struct BackupArguments {
  LogSource source;
  std::string out;
  bool force = false;
};

absl::Status RunBackup(const BackupArguments& arguments) {
  ClusterBackupOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  options.path = arguments.out;
  options.replaces = arguments.force;
  options.timeout_ms = arguments.source.timeout_ms;
  ALPHEUS_ASSIGN_OR_RETURN(const BackupReport report, BackUpCluster(options));
  const std::string lsns =
      report.end_lsn < report.head_lsn
          ? absl::StrCat(", which has none before LSN ", report.head_lsn.value)
          : absl::StrCat(", LSN ", report.head_lsn.value, " to ",
                         report.end_lsn.value);
  std::fprintf(
      stderr, "%s\n",
      absl::StrCat("alpheus: ", arguments.out, ": ", report.records,
                   " records with ", report.payload_bytes, " bytes of log ",
                   report.log_id.ToString(), lsns, "; all were read back")
          .c_str());
  return WriteAll(STDOUT_FILENO, absl::StrCat(report.records, "\n"));
}

}  // namespace

void AddBackupCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<BackupArguments>();
  CLI::App* command = AddCommand(
      app, "backup",
      {.purpose = "Copy the durable records of a cluster's log into a file",
       .about =
           "Makes a region file with all durable records of the log, at their "
           "LSNs and in their epochs. `alpheus cat`, `inspect`, `verify` and "
           "`salvage` read it, without a cluster. It is no replica, and no "
           "node "
           "takes it for one. Each record that was acknowledged before the "
           "command began, and was not cleaned, is in it. The log is appended "
           "to meanwhile. The file gets its name when it is whole and was read "
           "back. Prints the number of records.",
       .good = "the backup is there",
       .data_loss = "a record can't be read; no file was left",
       .unavailable = "too few replicas can be reached to know which records "
                      "were acknowledged; no file was left"});
  AddOption(command, "FILE", &arguments->out, "Backup to create").Required();
  AddClusterOptions(command, &arguments->source);
  RequireWhatIsMissing(command, [arguments]() -> std::string {
    return arguments->source.cluster.empty() ? "--cluster" : "";
  });
  AddTimeoutOption(command, &arguments->source.timeout_ms);
  AddFlag(command, "--force", &arguments->force,
          "Replace a backup of that name; nothing else is ever replaced");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunBackup(*arguments));
    };
  });
}

}  // namespace alpheus::cli
