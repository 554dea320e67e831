// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/source/log_source.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/readers_list.h"
#include "tools/cli/io/parser.h"

namespace alpheus::cli {
namespace {

constexpr uint64_t kNodeMax = 65'535;

// CR2 (cluster_reader.h).
void ReportBound(const ClusterReader& reader) {
  if (!reader.durable_is_lower_bound()) return;
  const std::optional<Lsn> possible = reader.durable_lsn_max();
  const std::string more =
      possible ? absl::StrCat("records up to LSN ", possible->value,
                              " may have been acknowledged, too")
               : "too few replicas could be read to know how many more were "
                 "acknowledged";
  std::fprintf(stderr,
               "alpheus: durable for certain up to LSN %llu; %s. Opening the "
               "log decides which records stay\n",
               static_cast<unsigned long long>(reader.durable_lsn().value),
               more.c_str());
}

// Returns whether the error is about this replica.
bool Names(const absl::Status& error, const ReplicaReading& replica) {
  const std::string node = absl::StrCat("node ", replica.node);
  return absl::StrContains(error.message(), WhyOf(replica)) &&
         (absl::StrContains(error.message(), absl::StrCat(node, ": ")) ||
          absl::StrContains(error.message(), absl::StrCat(node, ", ")) ||
          absl::StrContains(error.message(), absl::StrCat(node, " (")));
}

bool IsUnknownLog(const LogSource& source) {
  ClusterReaderOptions options;
  options.cluster_file = source.cluster;
  options.log_name = source.log;
  options.timeout_ms = source.timeout_ms;
  options.without_records = true;
  const auto reader = ClusterReader::Open(options);
  return reader.ok() &&
         std::ranges::all_of((*reader)->replicas(),
                             [](const ReplicaReading& replica) {
                               return absl::IsNotFound(replica.status);
                             });
}

void RequireEither(CLI::App* command, const LogSource* source) {
  RequireWhatIsMissing(command, [source]() -> std::string {
    if (!source->file.empty() || !source->cluster.empty()) return "";
    return "--file or --cluster";
  });
}

}  // namespace

Option AddNodeOption(CLI::App* command, LogSource* source,
                     const char* meaning) {
  return AddOption(command, "--node", &source->node, meaning)
      .Needs(FindOption(command, "--cluster"))
      .Decimal()
      .Range(uint64_t{1}, kNodeMax);
}

void AddClusterOptions(CLI::App* command, LogSource* source) {
  AddOption(
      command, "--cluster", &source->cluster,
      "Cluster file: the members that keep the logs, and their addresses");
  AddOption(command, "--log", &source->log, "Name of the log in the cluster")
      .Needs(FindOption(command, "--cluster"))
      .ShowDefault();
}

void AddTimeoutOption(CLI::App* command, uint32_t* timeout_ms) {
  AddOption(command, "--timeout-ms", timeout_ms,
            "How long a node may send nothing before the command gives up on "
            "it; all nodes are asked at once")
      .Needs(FindOption(command, "--cluster"))
      .Decimal()
      .Range(uint32_t{1}, kTimeoutMillisMax)
      .ShowDefault();
}

void AddReadSourceOptions(CLI::App* command, LogSource* source,
                          const char* node_meaning) {
  AddOption(command, "--file", &source->file,
            "Region file or DAX device of the log");
  AddClusterOptions(command, source);
  AddNodeOption(command, source, node_meaning);
  FindOption(command, "--cluster").Excludes(FindOption(command, "--file"));
  RequireEither(command, source);
}

void AddFormatSourceOptions(CLI::App* command, LogSource* source) {
  AddOption(command, "--file", &source->file, "Region file or DAX device");
  AddClusterOptions(command, source);
  FindOption(command, "--cluster").Excludes(FindOption(command, "--file"));
  RequireEither(command, source);
}

void AddWriteSourceOptions(CLI::App* command, LogSource* source) {
  AddOption(command, "--file", &source->file,
            "Region file or DAX device of the log. For a cluster's log: this "
            "node's own replica; without it only other nodes keep the records");
  AddClusterOptions(command, source);
  const Option node = AddNodeOption(
      command, source,
      "The member of the cluster that this process is, as primary");
  FindOption(command, "--cluster").Needs(node);
  RequireEither(command, source);
}

std::string AsOptions(const LogSource& source) {
  return source.is_cluster()
             ? absl::StrCat("--cluster ", source.cluster, " --log ", source.log)
             : absl::StrCat("--file ", source.file);
}

std::string Spelled(const LogSource& source, const std::string& text) {
  if (!source.is_cluster()) return text;
  return absl::StrReplaceAll(
      text, {{"--cluster FILE", absl::StrCat("--cluster ", source.cluster)},
             {"--log NAME", absl::StrCat("--log ", source.log)}});
}

absl::Status Explain(const LogSource& source, const absl::Status& status) {
  if (status.ok() || !source.is_cluster()) return status;
  const std::string text = Spelled(source, std::string(status.message()));
  const bool may_be_unknown =
      (absl::IsUnavailable(status) || absl::IsNotFound(status)) &&
      absl::StrContains(text, "no replica of this log");
  if (may_be_unknown && IsUnknownLog(source)) {
    return recovery::NoSuchLog(source.cluster, source.log);
  }
  return {status.code(), text};
}

std::string WhyOf(const ReplicaReading& replica) {
  const absl::string_view message = replica.status.message();
  const std::string node = absl::StrCat("node ", replica.node);
  for (const std::string& name :
       {absl::StrCat(node, " (", replica.address, ")"),
        absl::StrCat(node, " at ", replica.address), node, replica.address}) {
    absl::string_view rest = message;
    if (!absl::ConsumePrefix(&rest, name)) continue;
    if (absl::StartsWith(rest, ", log ")) {
      rest.remove_prefix(std::min(rest.find(':'), rest.size()));
    }
    if (absl::ConsumePrefix(&rest, ": ")) return std::string(rest);
  }
  return std::string(message);
}

void ReportUnread(const LogSource& source,
                  const std::vector<ReplicaReading>& replicas,
                  const absl::Status& error) {
  for (const ReplicaReading& replica : replicas) {
    if (replica.status.ok() || Names(error, replica)) continue;
    std::fprintf(stderr, "alpheus: node %llu: %s\n",
                 static_cast<unsigned long long>(replica.node),
                 Spelled(source, WhyOf(replica)).c_str());
  }
}

absl::StatusOr<std::unique_ptr<ClusterReader>> OpenClusterReader(
    const LogSource& source) {
  ClusterReaderOptions options;
  options.cluster_file = source.cluster;
  options.log_name = source.log;
  options.node = source.node;
  options.timeout_ms = source.timeout_ms;
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<ClusterReader> reader,
                           ClusterReader::Open(options));
  if (source.node == 0 && reader->outdated().ok()) ReportBound(*reader);
  return reader;
}

absl::Status WorstOf(const std::vector<ReplicaReading>& replicas) {
  const auto badness = [](const absl::Status& status) {
    if (status.ok()) return 0;
    if (absl::IsDataLoss(status)) return 3;
    return absl::IsFailedPrecondition(status) ? 2 : 1;
  };
  const auto worst = std::ranges::max_element(
      replicas, {},
      [&](const ReplicaReading& replica) { return badness(replica.status); });
  if (worst == replicas.end() || worst->status.ok()) return absl::OkStatus();
  return {worst->status.code(),
          absl::StrCat("node ", worst->node, ": ", WhyOf(*worst))};
}

}  // namespace alpheus::cli
