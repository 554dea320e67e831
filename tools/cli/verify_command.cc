// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "alpheus/log_reader.h"
#include "log/base/status_macros.h"
#include "tools/cli/arguments.h"
#include "tools/cli/commands.h"
#include "tools/cli/progress.h"
#include "tools/cli/region_report.h"
#include "tools/cli/standard_streams.h"

namespace alpheus::cli {
namespace {

struct VerifyArguments {
  std::string file;
  bool json = false;
};

std::string VerdictOf(const RegionInfo& info, const VerifyReport& report,
                      bool as_json) {
  if (!as_json) return VerdictText(info, report);
  Json json;
  json["file"] = info.path;
  json["head_lsn"] = info.head_lsn.value;
  json["single_faults"] = info.single_faults;
  json.update(DescribeRecords(report));
  return ToLine(json);
}

absl::Status RunVerify(const VerifyArguments& arguments) {
  const absl::StatusOr<std::unique_ptr<LogReader>> reader =
      LogReader::Open(arguments.file);
  if (!reader.ok()) {
    // Scripts that read JSON get a verdict in any case.
    if (arguments.json) {
      ALPHEUS_RETURN_IF_ERROR(WriteAll(
          STDOUT_FILENO,
          ToLine(DescribeUnreadable(arguments.file, reader.status()))));
    }
    return reader.status();
  }
  VerifyReport report;
  {
    ProgressLine progress("verifying");
    report =
        (*reader)->Verify([&](double done) { progress.ShowFraction(done); });
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(
      STDOUT_FILENO, VerdictOf((*reader)->info(), report, arguments.json)));
  return report.status;
}

}  // namespace

void AddVerifyCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = app->add_subcommand(
      "verify",
      "Check every record and every copy. Reads only. Exit status 0 if the log "
      "is complete or merely lost what was never acknowledged, 3 if it is "
      "damaged.");
  AddFileOption(command, &arguments->file);
  command->add_flag("--json", arguments->json, "One JSON object");
  command->callback([arguments, chosen] {
    *chosen = [arguments] { return RunVerify(*arguments); };
  });
}

}  // namespace alpheus::cli
