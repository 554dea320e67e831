// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "tools/cli/agreement.h"
#include "tools/cli/commands.h"
#include "tools/cli/log_source.h"
#include "tools/cli/parser.h"
#include "tools/cli/region_report.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/verification.h"

namespace alpheus::cli {
namespace {

struct VerifyArguments {
  LogSource source;
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

absl::Status VerifyCluster(const VerifyArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           OpenClusterReader(arguments.source));
  std::string text;
  for (const ReplicaReading& replica : reader->replicas()) {
    if (replica.info && replica.report) {
      absl::StrAppend(
          &text, VerdictOf({*replica.info, *replica.report}, arguments.json));
    } else if (arguments.json) {
      absl::StrAppend(
          &text, ToLine(DescribeUnreadable(replica.address, replica.status)));
    }
  }
  if (!reader->outdated().ok()) {  // others may have more, or other records
    ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
    return reader->outdated();
  }
  if (arguments.source.node == 0) {  // one alone agrees with nobody
    const absl::StatusOr<Agreement> agreement = CompareReplicas(reader.get());
    if (agreement.ok() && !arguments.json) {
      absl::StrAppend(&text, agreement->ToString());
    }
    if (!agreement.ok()) {
      ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
      return agreement.status();
    }
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
  return WorstOf(reader->replicas());
}

absl::Status VerifyFile(const VerifyArguments& arguments) {
  const std::string& file = arguments.source.file;
  const absl::StatusOr<Verification> found = VerifyRegion(file);
  std::string verdict;
  if (found.ok()) {
    verdict = VerdictOf(*found, arguments.json);
  } else if (arguments.json) {
    // Scripts that read JSON get a verdict in any case.
    verdict = ToLine(DescribeUnreadable(file, found.status()));
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, verdict));
  return found.ok() ? found->report.status : found.status();
}

absl::Status RunVerify(const VerifyArguments& arguments) {
  return arguments.source.is_cluster() ? VerifyCluster(arguments)
                                       : VerifyFile(arguments);
}

}  // namespace

void AddVerifyCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = AddSubcommand(
      app, "verify",
      "Check every record and every copy. Reads only. Exit status 0 if the log "
      "is complete or merely lost what was never acknowledged, 3 if it is "
      "damaged. Of a cluster's log every replica is checked, and that they "
      "hold the same records up to the last that is proven durable; 4 if one "
      "could not be reached, 1 if a node has no replica or the cluster file is "
      "wrong.");
  AddReadSourceOptions(command, &arguments->source);
  AddFlag(command, "--json", &arguments->json,
          "One JSON object per region instead of text");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunVerify(*arguments); };
  });
}

}  // namespace alpheus::cli
