// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/reports/region_report.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/verify/verification.h"

namespace alpheus::cli {
namespace {

struct InspectArguments {
  LogSource source;
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

absl::Status InspectCluster(const InspectArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           OpenClusterReader(arguments.source));
  std::string text;
  for (const ReplicaReading& replica : reader->replicas()) {
    if (!replica.info || !replica.report) continue;
    if (!text.empty() && !arguments.json) absl::StrAppend(&text, "\n");
    absl::StrAppend(
        &text, InspectionOf({*replica.info, *replica.report}, arguments.json));
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
  absl::Status worst = WorstOf(reader->replicas());
  ReportUnread(arguments.source, reader->replicas(), worst);
  return worst;
}

absl::Status InspectFile(const InspectArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Verification found,
                           VerifyRegion(arguments.source.file));
  ALPHEUS_RETURN_IF_ERROR(
      WriteAll(STDOUT_FILENO, InspectionOf(found, arguments.json)));
  return found.report.status;
}

absl::Status RunInspect(const InspectArguments& arguments) {
  return arguments.source.is_cluster() ? InspectCluster(arguments)
                                       : InspectFile(arguments);
}

}  // namespace

void AddInspectCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command =
      AddCommand(app, "inspect",
                 {.purpose = "Show the contents of a region",
                  .about = "Shows superline, epochs, head, tail, and the "
                           "number of records of each type. Of a cluster's log "
                           "it shows every replica. Reads only."});
  AddReadSourceOptions(command, &arguments->source);
  AddTimeoutOption(command, &arguments->source.timeout_ms);
  AddFlag(command, "--json", &arguments->json,
          "One JSON object per region instead of text");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunInspect(*arguments));
    };
  });
}

}  // namespace alpheus::cli
