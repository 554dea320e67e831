// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "alpheus/cluster_reader.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/framing.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/progress.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

using Visitor = std::function<absl::Status(const ReaderRecord&)>;

// How often a live writer may outrun the reader without a record between.
constexpr int kReopenMax = 100;

struct CatArguments {
  LogSource source;
  std::string framing = "lines";
  bool json = false;
};

bool HasContent(const ReaderRecord& record) {
  return record.state == RecordState::kDurable ||
         record.state == RecordState::kCompleted;
}

Json Describe(const ReaderRecord& record) {
  Json json;
  json["lsn"] = record.lsn.value;
  json["epoch"] = record.epoch.value;
  json["length"] = record.payload.size();
  json["state"] = RecordStateName(record.state);
  return json;
}

Visitor PayloadWriter(Framing framing, Output* output) {
  return [framing, output](const ReaderRecord& record) {
    if (!HasContent(record)) return absl::OkStatus();
    return WriteFrame(framing, AsText(record.payload), output);
  };
}

Visitor JsonWriter(Output* output) {
  return [output](const ReaderRecord& record) {
    return output->Write(ToLine(Describe(record)));
  };
}

// Makes one pass over the records after *last, and moves *last.
absl::Status VisitAfter(const std::string& file, const Visitor& visit,
                        Lsn* last) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           LogReader::Open(file));
  ProgressLine progress("reading");
  uint64_t count = 0;
  return reader->ForEach([&](const ReaderRecord& record) {
    if (record.lsn <= *last) return absl::OkStatus();
    *last = record.lsn;
    progress.ShowCount(++count);
    return visit(record);
  });
}

// A live writer may clean and reuse records before they are read: they are no
// longer needed, and the reader continues at the new head.
absl::Status VisitAll(const std::string& file, const Visitor& visit) {
  Lsn last;
  for (int reopened = 0;; ++reopened) {
    const Lsn before = last;
    absl::Status status = VisitAfter(file, visit, &last);
    if (last > before) reopened = 0;
    if (!absl::IsOutOfRange(status) || reopened >= kReopenMax) return status;
  }
}

absl::Status VisitReplicas(const LogSource& source, ClusterReader* reader,
                           const Visitor& visit) {
  if (source.node == 0) {
    ALPHEUS_RETURN_IF_ERROR(reader->ForEachDurable(visit));
    if (reader->durable_lsn_max()) return absl::OkStatus();
    // Unreadable replicas exist, but are damaged.
    const absl::Status worst = WorstOf(reader->replicas());
    if (absl::IsDataLoss(worst)) return worst;
    // A script must not take the little that is proven for the log.
    return absl::UnavailableError(absl::StrCat(
        "log ", source.log,
        ": the records that are proven to be durable were shown, up to ",
        "LSN ", reader->durable_lsn().value,
        "; too few replicas can be reached to know how many more there are. "
        "`alpheus status --cluster FILE --log NAME` names the nodes"));
  }
  LogReader* const replica = reader->reader(0);
  return replica == nullptr ? WorstOf(reader->replicas())
                            : replica->ForEach(visit);
}

absl::Status VisitCluster(const LogSource& source, const Visitor& visit) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           OpenClusterReader(source));
  absl::Status visited = VisitReplicas(source, reader.get(), visit);
  ReportUnread(source, reader->replicas(), visited);
  return visited;
}

absl::Status RunCat(const CatArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Framing framing,
                           ParseFraming(arguments.framing));
  Output output(STDOUT_FILENO);
  const Visitor visit =
      arguments.json ? JsonWriter(&output) : PayloadWriter(framing, &output);
  const LogSource& source = arguments.source;
  absl::Status visited = source.is_cluster() ? VisitCluster(source, visit)
                                             : VisitAll(source.file, visit);
  // Records before the damage are worth having.
  absl::Status flushed = output.Flush();
  return visited.ok() ? flushed : visited;
}

}  // namespace

void AddCatCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<CatArguments>();
  CLI::App* command = AddCommand(
      app, "cat",
      {.purpose = "Write all payloads to standard output",
       .about = "Writes them in LSN order. Reads only. While a writer has the "
                "log open, it shows the records that are persisted so far.\n"
                "Of a cluster's log it shows the records that are proven to be "
                "on W replicas. It warns on standard error if more may have "
                "been acknowledged.\n"
                "With --node, or with --file of a replica, it shows the "
                "records of that one replica. The last ones may be on no other "
                "replica, and may be lost later. Durable records may be "
                "missing. --json shows which records are durable for certain.",
       .good = "the records were shown",
       .data_loss = "a record is damaged; all records before it were shown",
       .unavailable = "too few replicas can be reached to know how many more "
                      "records there are, or the medium failed"});
  AddReadSourceOptions(command, &arguments->source);
  AddTimeoutOption(command, &arguments->source.timeout_ms);
  AddFramingOption(command, &arguments->framing);
  AddFlag(command, "--json", &arguments->json,
          "Instead of payloads one JSON object per line: lsn, epoch, "
          "length, state (durable, completed: whole but not proven "
          "to be durable, cleaned, aborted); "
          "cleaned and aborted records are listed too");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunCat(*arguments));
    };
  });
}

}  // namespace alpheus::cli
