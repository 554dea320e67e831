// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "alpheus/log_reader.h"
#include "log/base/status_macros.h"
#include "tools/cli/arguments.h"
#include "tools/cli/commands.h"
#include "tools/cli/progress.h"
#include "tools/cli/region_report.h"
#include "tools/cli/standard_streams.h"

namespace alpheus::cli {
namespace {

struct InspectArguments {
  std::string file;
  bool json = false;
};

std::string InspectionOf(const RegionInfo& info, const VerifyReport& report,
                         bool as_json) {
  if (!as_json) return absl::StrCat(RegionText(info), RecordsText(report));
  Json json = DescribeRegion(info);
  json["records"] = DescribeRecords(report);
  return ToLine(json);
}

absl::Status RunInspect(const InspectArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           LogReader::Open(arguments.file));
  VerifyReport report;
  {
    ProgressLine progress("reading");
    report = reader->Verify([&](double done) { progress.ShowFraction(done); });
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(
      STDOUT_FILENO, InspectionOf(reader->info(), report, arguments.json)));
  return report.status;
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
