// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands.h"
#include "tools/cli/json_output.h"
#include "tools/cli/log_source.h"
#include "tools/cli/parser.h"
#include "tools/cli/standard_streams.h"

namespace alpheus::cli {
namespace {

struct StatusArguments {
  LogSource source;
  bool json = false;
};

// Nodes that can be counted on, as far as looking tells.
struct Tally {
  uint32_t reached = 0;
  uint32_t usable = 0;  // of these: may promise an epoch
  // Of these; and those that know nothing of the newest epoch's records, which
  // are not those that never were in it (A4.3).
  uint32_t repairing = 0;
  uint32_t unknowing = 0;
  Epoch newest;

  explicit Tally(const std::vector<ReplicaReading>& replicas) {
    for (const ReplicaReading& replica : replicas) {
      if (!replica.info) continue;
      ++reached;
      newest = std::max(newest, replica.info->log_epoch);
    }
    for (const ReplicaReading& replica : replicas) {
      if (!replica.info || !replica.status.ok()) continue;
      ++usable;
      if (!replica.info->repairing) continue;
      ++repairing;
      if (replica.info->log_epoch == newest) ++unknowing;
    }
  }
};

std::string StateOf(const ReplicaReading& replica, const Tally& tally) {
  if (!replica.status.ok()) {
    // The address stands before it already.
    absl::string_view message = replica.status.message();
    absl::ConsumePrefix(&message, absl::StrCat(replica.address, ": "));
    return absl::StrCat(absl::StatusCodeToString(replica.status.code()), ": ",
                        message);
  }
  if (replica.info->repairing) {
    return "repairing: holds nothing that counts until an opening repairs it";
  }
  if (replica.info->log_epoch < tally.newest) {
    return "behind: not in the newest epoch, holds nothing of it";
  }
  if (replica.info->log_epoch == Epoch()) return "empty: never opened";
  return "in the newest epoch";
}

void AddCounts(const std::vector<std::pair<std::string, uint64_t>>& counts,
               absl::string_view what, std::string* text) {
  if (counts.empty()) return;
  absl::StrAppend(text, "  ", what, ": ",
                  absl::StrJoin(counts, ", ",
                                [](std::string* out, const auto& count) {
                                  absl::StrAppend(out, count.second, " ",
                                                  count.first);
                                }),
                  "\n");
}

std::string TextOf(const ReplicaReading& replica, const Tally& tally) {
  std::string text =
      absl::StrFormat("node %-5d %-21s ", replica.node, replica.address);
  if (replica.info) {
    absl::StrAppendFormat(
        &text, "epoch %d promised %d head %d watermark %d  ",
        replica.info->log_epoch.value, replica.info->promised_epoch.value,
        replica.info->head_lsn.value, replica.info->watermark_lsn.value);
  }
  absl::StrAppend(&text, StateOf(replica, tally), "\n");
  AddCounts(replica.refusals, "refused since it started", &text);
  AddCounts(replica.scrubbed, "scrubbed since then", &text);
  return text;
}

Json JsonOf(const ReplicaReading& replica, const Tally& tally) {
  Json json;
  json["node"] = replica.node;
  json["address"] = replica.address;
  json["reached"] = replica.info.has_value();
  if (replica.info) {
    json["log_epoch"] = replica.info->log_epoch.value;
    json["promised_epoch"] = replica.info->promised_epoch.value;
    json["head_lsn"] = replica.info->head_lsn.value;
    json["watermark_lsn"] = replica.info->watermark_lsn.value;
    json["ring_capacity"] = replica.info->ring_capacity;
    json["repairing"] = replica.info->repairing;
  }
  json["state"] = StateOf(replica, tally);
  json["refused"] = Json::object();
  for (const auto& [reason, count] : replica.refusals) {
    json["refused"][reason] = count;
  }
  json["scrubbed"] = Json::object();
  for (const auto& [what, count] : replica.scrubbed) {
    json["scrubbed"][what] = count;
  }
  return json;
}

std::string WhatIsMissing(uint32_t needed, uint32_t there,
                          absl::string_view which) {
  return absl::StrCat(
      "Opening the log takes ", needed, " replicas", which, ": ",
      needed - there, " more must be served by their nodes",
      there + 1 == needed ? ", or one be of the primary that opens it\n"
                          : "\n");
}

std::string SummaryOf(const ClusterReader& reader, const Tally& tally) {
  const uint32_t needed = std::max(reader.write_quorum(), reader.read_quorum());
  std::string text =
      absl::StrCat(tally.reached, " of ", reader.replicas().size(),
                   " replicas reached, W is ", reader.write_quorum(), ", R is ",
                   reader.read_quorum());
  if (tally.reached > 0) {
    absl::StrAppend(&text, "; durable up to LSN ", reader.durable_lsn().value,
                    " at least");
  }
  absl::StrAppend(&text, "\n");
  if (tally.repairing > 0) {
    absl::StrAppend(&text, "Of those reached ", tally.repairing,
                    tally.repairing == 1 ? " is" : " are",
                    " repairing: no record counts there\n");
  }
  // Fewer could not say that a record which nobody has is not durable (A4.4).
  const uint32_t telling = reader.replica_count() - reader.write_quorum() + 1;
  if (tally.usable < needed) {
    absl::StrAppend(&text, WhatIsMissing(needed, tally.usable, ""));
  } else if (tally.usable - tally.unknowing < telling) {
    absl::StrAppend(&text,
                    WhatIsMissing(telling, tally.usable - tally.unknowing,
                                  " that are not repairing"));
  }
  return text;
}

absl::Status RunStatus(const StatusArguments& arguments) {
  ClusterReaderOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  options.without_records = true;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           ClusterReader::Open(options));
  const Tally tally(reader->replicas());
  std::string text;
  for (const ReplicaReading& replica : reader->replicas()) {
    absl::StrAppend(&text, arguments.json ? ToLine(JsonOf(replica, tally))
                                          : TextOf(replica, tally));
  }
  if (!arguments.json) absl::StrAppend(&text, SummaryOf(*reader, tally));
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
  return WorstOf(reader->replicas());
}

}  // namespace

void AddStatusCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<StatusArguments>();
  CLI::App* command = AddSubcommand(
      app, "status",
      "Show what each replica of a cluster's log says of itself: epoch, "
      "promise, head, watermark; whether enough are served to open it. Reads "
      "only. Exit status 0 if all are served and whole, behind or repairing "
      "ones too; 4 if one could not be reached; 3 if one is damaged; 1 if a "
      "node has no replica, or the cluster file is wrong. A replica that a "
      "running primary has as its own can't be reached.");
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddFlag(command, "--json", &arguments->json, "One JSON object per replica");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunStatus(*arguments); };
  });
}

}  // namespace alpheus::cli
