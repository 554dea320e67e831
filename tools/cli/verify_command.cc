// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "log/base/status_macros.h"
#include "tools/cli/arguments.h"
#include "tools/cli/commands.h"
#include "tools/cli/region_report.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/verification.h"

namespace alpheus::cli {
namespace {

struct VerifyArguments {
  std::string file;
  bool json = false;
};

std::string VerdictOf(const Verification& found, bool as_json) {
  if (!as_json) return VerdictText(found.info, found.report);
  Json json;
  json["file"] = found.info.path;
  json["head_lsn"] = found.info.head_lsn.value;
  json["single_faults"] = found.info.single_faults;
  json.update(DescribeRecords(found.report));
  return ToLine(json);
}

absl::Status RunVerify(const VerifyArguments& arguments) {
  const absl::StatusOr<Verification> found = VerifyRegion(arguments.file);
  std::string verdict;
  if (found.ok()) {
    verdict = VerdictOf(*found, arguments.json);
  } else if (arguments.json) {
    // Scripts that read JSON get a verdict in any case.
    verdict = ToLine(DescribeUnreadable(arguments.file, found.status()));
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, verdict));
  return found.ok() ? found->report.status : found.status();
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
