// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "tools/cli/arguments.h"
#include "tools/cli/commands.h"
#include "tools/cli/region_report.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/verification.h"

namespace alpheus::cli {
namespace {

struct InspectArguments {
  std::string file;
  bool json = false;
};

std::string InspectionOf(const Verification& found, bool as_json) {
  if (!as_json) {
    return absl::StrCat(RegionText(found.info), RecordsText(found.report));
  }
  Json json = DescribeRegion(found.info);
  json["records"] = DescribeRecords(found.report);
  return ToLine(json);
}

absl::Status RunInspect(const InspectArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Verification found,
                           VerifyRegion(arguments.file));
  ALPHEUS_RETURN_IF_ERROR(
      WriteAll(STDOUT_FILENO, InspectionOf(found, arguments.json)));
  return found.report.status;
}

}  // namespace

void AddInspectCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app->add_subcommand(
      "inspect",
      "Show what a region says of itself: superline, epochs, head, tail, and "
      "records by type. Reads only.");
  AddFileOption(command, &arguments->file);
  command->add_flag("--json", arguments->json, "One JSON object");
  command->callback([arguments, chosen] {
    *chosen = [arguments] { return RunInspect(*arguments); };
  });
}

}  // namespace alpheus::cli
