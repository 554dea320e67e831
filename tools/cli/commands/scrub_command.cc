// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "api/admin/cluster_scrub.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/readers_list.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/progress.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

struct ScrubArguments {
  LogSource source;
  bool json = false;
};

std::string TextOf(const recovery::LsnRun& run) {
  return run.end - run.first == 1
             ? absl::StrCat(run.first.value)
             : absl::StrCat(run.first.value, " to ", run.end.value - 1);
}

std::string TextOf(const ScrubResult& scrub, const LogSource& source) {
  std::string text =
      absl::StrFormat("node %-5d %-21s ", scrub.node, scrub.address);
  if (!scrub.status.ok() && !absl::IsDataLoss(scrub.status)) {
    return absl::StrCat(
        text, absl::StatusCodeToString(scrub.status.code()), ": ",
        Spelled(source, std::string(absl::StripPrefix(
                            scrub.status.message(),
                            absl::StrCat(scrub.address, ": ")))),
        "\n");
  }
  if (scrub.said.is_empty) {
    return absl::StrCat(
        text, "no records that count: the replica is empty, or repairing\n");
  }
  const recovery::ScrubCounts& pass = scrub.said.pass;
  absl::StrAppendFormat(&text, "%d records verified, %d bytes", pass.records,
                        pass.bytes);
  if (pass.damaged == 0) return absl::StrCat(text, "; no damage\n");
  absl::StrAppendFormat(&text, "; %d damaged, %d repaired", pass.damaged,
                        pass.repaired);
  if (scrub.said.unrepairable.empty()) return absl::StrCat(text, "\n");
  return absl::StrCat(
      text, ", not repairable: LSN ",
      absl::StrJoin(scrub.said.unrepairable, ", ",
                    [](std::string* out, const recovery::LsnRun& run) {
                      absl::StrAppend(out, TextOf(run));
                    }),
      "\n");
}

Json JsonOf(const ScrubResult& scrub) {
  Json json;
  json["node"] = scrub.node;
  json["address"] = scrub.address;
  json["status"] = absl::StatusCodeToString(scrub.status.code());
  if (!scrub.status.ok()) json["message"] = std::string(scrub.status.message());
  json["empty"] = scrub.said.is_empty;
  json["records"] = scrub.said.pass.records;
  json["bytes"] = scrub.said.pass.bytes;
  json["damaged"] = scrub.said.pass.damaged;
  json["repaired"] = scrub.said.pass.repaired;
  json["unrepairable"] = scrub.said.pass.unrepairable;
  json["unrepairable_lsns"] = Json::array();
  for (const recovery::LsnRun& run : scrub.said.unrepairable) {
    json["unrepairable_lsns"].push_back({run.first.value, run.end.value - 1});
  }
  return json;
}

absl::Status WorstScrub(const std::vector<ScrubResult>& scrubs,
                        const LogSource& source) {
  const ScrubResult* worst = nullptr;
  for (const ScrubResult& scrub : scrubs) {
    if (scrub.status.ok()) continue;
    if (worst == nullptr || absl::IsDataLoss(scrub.status)) worst = &scrub;
  }
  if (worst == nullptr) return absl::OkStatus();
  const bool is_nowhere =
      source.node == 0 &&
      std::ranges::all_of(scrubs, [](const ScrubResult& scrub) {
        return absl::IsNotFound(scrub.status);
      });
  if (is_nowhere) return recovery::NoSuchLog(source.cluster, source.log);
  return {worst->status.code(),
          absl::StrCat("node ", worst->node, ", log ", source.log, ": ",
                       absl::StripPrefix(worst->status.message(),
                                         absl::StrCat(worst->address, ": ")))};
}

absl::Status RunScrub(const ScrubArguments& arguments) {
  ProgressLine progress("scrubbing");
  ClusterScrubOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  options.node = arguments.source.node;
  options.timeout_ms = arguments.source.timeout_ms;
  uint64_t records = 0;
  options.progress = [&](const ScrubResult& scrub) {
    records = std::max(records, scrub.said.pass.records);
    progress.ShowCount(records);
  };
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<ScrubResult> scrubs,
                           ScrubCluster(options));
  std::string text;
  for (const ScrubResult& scrub : scrubs) {
    absl::StrAppend(&text, arguments.json ? ToLine(JsonOf(scrub))
                                          : TextOf(scrub, arguments.source));
  }
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, text));
  return WorstScrub(scrubs, arguments.source);
}

}  // namespace

void AddScrubCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<ScrubArguments>();
  CLI::App* command = AddCommand(
      app, "scrub",
      {.purpose = "Verify and repair a cluster's replicas",
       .about = "Each node verifies every record of its replica of the log, "
                "and repairs damaged records from the other nodes. The log may "
                "be written meanwhile. A primary with a replica of its own "
                "verifies that replica itself.\n"
                "A log in a file of its own has no peers: `verify` checks it, "
                "and opening it writes damaged copies again.",
       .good = "all replicas are whole, or were repaired",
       .failed = "a node has no replica, or the cluster file is wrong",
       .data_loss = "damage remains",
       .unavailable = "a node can't be reached"});
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddNodeOption(command, &arguments->source,
                "Only the replica of this node of the cluster");
  AddTimeoutOption(command, &arguments->source.timeout_ms);
  AddFlag(command, "--json", &arguments->json, "One JSON object per replica");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunScrub(*arguments));
    };
  });
}

}  // namespace alpheus::cli
