// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/cluster_reader.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/reports/region_report.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/verify/agreement.h"
#include "tools/cli/verify/verification.h"

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

// Nodes whose replica a running primary has as its own: nobody else can read
// it meanwhile, and it is checked there.
absl::StatusOr<std::vector<uint64_t>> NodesOfPrimaries(
    const LogSource& source) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           ClusterReader::Open({.cluster_file = source.cluster,
                                                .log_name = source.log,
                                                .timeout_ms = source.timeout_ms,
                                                .without_records = true}));
  std::vector<uint64_t> nodes;
  for (const ReplicaReading& replica : reader->replicas()) {
    const bool is_own = replica.standing && replica.standing->is_own &&
                        replica.standing->in_session;
    if (is_own) nodes.push_back(replica.node);
  }
  return nodes;
}

// The complaints that are left; says why the other replicas were not checked.
absl::StatusOr<std::vector<ReplicaReading>> WithoutOwnOfPrimaries(
    const VerifyArguments& arguments, std::vector<ReplicaReading> replicas,
    std::string* text) {
  const bool any_missing =
      std::ranges::any_of(replicas, [](const ReplicaReading& replica) {
        return absl::IsUnavailable(replica.status);
      });
  // A user who gives --node wants that node.
  if (!any_missing || arguments.source.node != 0) return replicas;
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<uint64_t> nodes,
                           NodesOfPrimaries(arguments.source));
  std::erase_if(replicas, [&](const ReplicaReading& replica) {
    const bool is_own = absl::IsUnavailable(replica.status) &&
                        std::ranges::count(nodes, replica.node) != 0;
    if (is_own && !arguments.json) {
      absl::StrAppend(text, "node ", replica.node,
                      ": not checked: a running primary has this replica as "
                      "its own; `alpheus scrub` verifies it\n");
    }
    return is_own;
  });
  return replicas;
}

absl::Status VerifyReplicas(const VerifyArguments& arguments,
                            ClusterReader* reader) {
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
    const absl::StatusOr<Agreement> agreement = CompareReplicas(reader);
    if (agreement.ok() && !arguments.json) {
      absl::StrAppend(&text, agreement->ToString());
    }
    if (!agreement.ok()) {
      ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
      return agreement.status();
    }
  }
  const auto left = WithoutOwnOfPrimaries(arguments, reader->replicas(), &text);
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
  ALPHEUS_RETURN_IF_ERROR(left.status());
  return WorstOf(*left);
}

absl::Status VerifyCluster(const VerifyArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           OpenClusterReader(arguments.source));
  absl::Status verified = VerifyReplicas(arguments, reader.get());
  ReportUnread(arguments.source, reader->replicas(), verified);
  return verified;
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
  CLI::App* command = AddCommand(
      app, "verify",
      {.purpose = "Check every record and every copy",
       .about = "Reads only. In a cluster's log it checks every replica, and "
                "that all hold the same records up to the last one that is "
                "proven durable.",
       .good = "the log is complete, or lost only records that were never "
               "acknowledged",
       .failed =
           "a node has no replica, the cluster file is wrong, or anything else",
       .data_loss = "the log is damaged",
       .unavailable = "a replica can't be reached, unless a running primary "
                      "has it as its own"});
  AddReadSourceOptions(command, &arguments->source);
  AddTimeoutOption(command, &arguments->source.timeout_ms);
  AddFlag(command, "--json", &arguments->json,
          "One JSON object per region instead of text");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunVerify(*arguments));
    };
  });
}

}  // namespace alpheus::cli
