// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/configuration.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/progress.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/reports/cluster_status.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/source/wait_notice.h"

namespace alpheus::cli {
namespace {

struct CleanupArguments {
  LogSource source;
  bool take_over = false;
  std::optional<uint64_t> through;
  std::vector<uint64_t> lsns;
  bool all = false;
};

using StatesByLsn = std::map<Lsn, std::optional<RecordState>>;

// Opening for writing changes a region, so what can't be cleaned is refused
// before, by reading. Damage is left for Log::Open to judge.
absl::Status FindStates(LogReader* reader, StatesByLsn* states, Lsn* end) {
  ProgressLine progress("reading");
  uint64_t count = 0;
  return reader->ForEach([&](const ReaderRecord& record) {
    progress.ShowCount(++count);
    *end = record.lsn;
    const auto wanted = states->find(record.lsn);
    if (wanted != states->end()) wanted->second = record.state;
    return absl::OkStatus();
  });
}

absl::Status NeverAssigned(const std::string& file, Lsn lsn, Lsn end) {
  return absl::OutOfRangeError(absl::StrCat(
      file, ": LSN ", lsn.value, " was never assigned: the last one is ",
      end.value, ". Nothing was changed"));
}

absl::Status CheckLsn(const std::string& file, Lsn lsn,
                      const std::optional<RecordState>& state, Lsn head,
                      Lsn end) {
  if (lsn < head || state == RecordState::kCleaned) {
    return absl::NotFoundError(absl::StrCat(
        file, ": LSN ", lsn.value, " is cleaned already (head is LSN ",
        head.value, "). Nothing was changed"));
  }
  if (!state) return NeverAssigned(file, lsn, end);
  return absl::OkStatus();
}

absl::Status CheckArguments(const CleanupArguments& arguments) {
  const int wishes = (arguments.through ? 1 : 0) +
                     (arguments.lsns.empty() ? 0 : 1) + (arguments.all ? 1 : 0);
  if (wishes != 1) {
    return absl::InvalidArgumentError(
        "what to clean: give one of --through, --lsn and --all");
  }
  const bool has_zero = arguments.through == 0u ||
                        std::find(arguments.lsns.begin(), arguments.lsns.end(),
                                  0u) != arguments.lsns.end();
  // The mark of one record is a hint on one replica, and this process has none.
  if (arguments.source.is_cluster() && !arguments.lsns.empty()) {
    return absl::InvalidArgumentError(
        "--lsn is not for a cluster's log, which is cleaned from its oldest "
        "record on; give --through or --all");
  }
  if (!has_zero) return absl::OkStatus();
  return absl::InvalidArgumentError("LSN 0: LSNs begin with 1");
}

// Refuses LSNs that can't be cleaned. A region that is open for writing is
// left to Log::Open, which names the reason.
absl::Status CheckRequest(const CleanupArguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(CheckArguments(arguments));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           LogReader::Open(arguments.source.file));
  if (arguments.all || reader->info().has_writer) return absl::OkStatus();
  StatesByLsn states;
  for (const uint64_t lsn : arguments.lsns) states[Lsn(lsn)];
  const Lsn head = reader->info().head_lsn;
  Lsn end = head - 1;
  const absl::Status read = FindStates(reader.get(), &states, &end);
  if (!read.ok() && !absl::IsDataLoss(read)) return read;
  if (arguments.through && Lsn(*arguments.through) > end) {
    return read.ok() ? NeverAssigned(arguments.source.file,
                                     Lsn(*arguments.through), end)
                     : read;
  }
  for (const auto& [lsn, state] : states) {
    const absl::Status checked =
        CheckLsn(arguments.source.file, lsn, state, head, end);
    if (!checked.ok()) return read.ok() ? checked : read;
  }
  return absl::OkStatus();
}

absl::StatusOr<Lsn> EndLsn(const std::string& file) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           LogReader::Open(file));
  return reader->Verify().end_lsn;
}

absl::StatusOr<std::unique_ptr<Log>> OpenLog(
    const CleanupArguments& arguments) {
  LogOptions options;
  options.path = arguments.source.file;
  options.cleanup_through = Lsn(arguments.through.value_or(0));
  absl::StatusOr<std::unique_ptr<Log>> log = Log::Open(options);
  if (!arguments.all || !absl::IsResourceExhausted(log.status())) return log;
  // The epoch table is full of epochs that own the records to be cleaned.
  ALPHEUS_ASSIGN_OR_RETURN(options.cleanup_through,
                           EndLsn(arguments.source.file));
  return Log::Open(options);
}

// Refuses if a primary writes the log: opening it would end that one, which
// must not happen by accident.
absl::Status CheckNobodyWrites(const CleanupArguments& arguments,
                               const ClusterStatus& status) {
  if (status.primary == 0 || arguments.take_over) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("log ", arguments.source.log, ": the primary on node ",
                   status.primary, " writes it, in epoch ", status.newest.value,
                   "; opening the log here would end that primary. Clean in "
                   "the program that writes (Log::CleanupThrough), stop that "
                   "program, or give --take-over. Nothing was changed"));
}

// Checks before anything is promised, so that a running writer continues. An
// unreachable writer can't have made the LSN durable without one of R other
// replicas.
absl::Status CheckWasAssigned(const CleanupArguments& arguments,
                              const ClusterStatus& status) {
  Lsn last = status.LastKnown();
  const Lsn through(arguments.through.value_or(0));
  if (through <= last || status.reached < status.read_quorum) {
    return absl::OkStatus();
  }
  ClusterReaderOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  const auto reader = ClusterReader::Open(options);
  // The opening reports why, if it ends no running primary; a node may not know
  // yet which process has its replica.
  const bool is_held =
      std::ranges::any_of(status.replicas, [](const ReplicaReading& replica) {
        return replica.standing && replica.standing->is_own;
      });
  if (!reader.ok() && status.primary == 0 && !is_held) return absl::OkStatus();
  for (size_t i = 0; reader.ok() && i < (*reader)->replicas().size(); ++i) {
    const ReplicaReading& replica = (*reader)->replicas()[i];
    if (!replica.report || replica.info->log_epoch != status.newest) continue;
    last = std::max(last, replica.report->end_lsn);
  }
  if (through <= last) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("log ", arguments.source.log, ": LSN ", through.value,
                   " was never assigned: the last one is ", last.value,
                   ", as far as its nodes know. Nothing was changed"));
}

// A failed opening may have ended the primary.
absl::Status CleanedNothing(const CleanupArguments& arguments,
                            const ClusterStatus& before,
                            const absl::Status& why) {
  std::string text =
      absl::StrCat("log ", arguments.source.log, ": ", why.message());
  if (before.primary != 0) {
    const auto after = TakeStatus(arguments.source, {.sample_ms = 0});
    absl::StrAppend(&text, ". Nothing was cleaned");
    if (after.ok()) {
      absl::StrAppend(&text, "; ", WhatBecameOfPrimary(before, *after));
    }
  }
  return {why.code(), text};
}

// Any member that may be primary; this process keeps no replica.
absl::StatusOr<uint64_t> NodeToOpenAs(const LogSource& source) {
  if (source.node != 0) return source.node;
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(source.cluster));
  const auto found = std::ranges::find_if(
      cluster.members,
      [](const quorum::ClusterMember& m) { return m.may_be_primary; });
  return found->node.value;  // CF3 (configuration.h): there is one
}

absl::StatusOr<std::unique_ptr<Log>> OpenClusterLog(
    const CleanupArguments& arguments) {
  const LogSource& source = arguments.source;
  const WaitNotice notice(
      source,
      absl::StrCat(
          "it asks them first; then it opens the log, and gives up after ",
          ReplicationOptions().open_timeout_ms / 1000, " s"));
  ALPHEUS_ASSIGN_OR_RETURN(const ClusterStatus status,
                           TakeStatus(source, {.sample_ms = 0}));
  ALPHEUS_RETURN_IF_ERROR(CheckNobodyWrites(arguments, status));
  ALPHEUS_RETURN_IF_ERROR(CheckWasAssigned(arguments, status));
  LogOptions options;
  options.replication.cluster_file = source.cluster;
  options.replication.log_name = source.log;
  ALPHEUS_ASSIGN_OR_RETURN(options.replication.node, NodeToOpenAs(source));
  options.cleanup_through = Lsn(arguments.through.value_or(0));
  absl::StatusOr<std::unique_ptr<Log>> log = Log::Open(options);
  if (arguments.all && absl::IsResourceExhausted(log.status())) {
    options.cleanup_through = status.durable_lsn;
    log = Log::Open(options);
  }
  if (log.ok()) return log;
  return CleanedNothing(arguments, status, log.status());
}

absl::Status Clean(const CleanupArguments& arguments, Log* log) {
  if (arguments.all) return log->CleanupAll();
  if (arguments.through) return log->CleanupThrough(Lsn(*arguments.through));
  for (const uint64_t lsn : arguments.lsns) {
    ALPHEUS_RETURN_IF_ERROR(log->Cleanup(Lsn(lsn)));
  }
  return absl::OkStatus();
}

absl::Status RunCleanup(CleanupArguments arguments) {
  std::sort(arguments.lsns.begin(), arguments.lsns.end());
  arguments.lsns.erase(
      std::unique(arguments.lsns.begin(), arguments.lsns.end()),
      arguments.lsns.end());
  const bool is_cluster = arguments.source.is_cluster();
  ALPHEUS_RETURN_IF_ERROR(is_cluster ? CheckArguments(arguments)
                                     : CheckRequest(arguments));
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Log> log,
      is_cluster ? OpenClusterLog(arguments) : OpenLog(arguments));
  absl::Status cleaned = Clean(arguments, log.get());
  const Lsn head = log->head_lsn();
  absl::Status closed = log->Close();
  ALPHEUS_RETURN_IF_ERROR(cleaned);
  ALPHEUS_RETURN_IF_ERROR(closed);
  return WriteAll(STDOUT_FILENO, absl::StrCat(head.value, "\n"));
}

// No option group of the parser's: it is a command without a name, which an
// empty word on the command line would call, for ever.
void AddWhatOptions(CLI::App* command, CleanupArguments* arguments) {
  constexpr char kGroup[] = "Records to clean (one of)";
  AddOption(command, "--through", &arguments->through,
            "All records up to and including this LSN; works even when "
            "the epoch table is full")
      .Decimal()
      .Group(kGroup);
  AddOption(command, "--lsn", &arguments->lsns, "Only these records")
      .Decimal()
      .Group(kGroup);
  AddFlag(command, "--all", &arguments->all,
          "All records; they cannot be brought back")
      .Group(kGroup);
}

}  // namespace

void AddCleanupCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<CleanupArguments>();
  CLI::App* command =
      AddCommand(app, "cleanup",
                 {.purpose = "Mark records as no longer needed",
                  .about = "Their space can be reused then. Prints the head: "
                           "the oldest LSN that is not cleaned.\n"
                           "A cluster's log is opened for this, as by "
                           "`append`. While a primary writes the log, that is "
                           "refused. --take-over ends that primary instead.",
                  .failed = "anything else: no such file, region in use, a "
                            "primary writes the log"});
  AddReadSourceOptions(command, &arguments->source,
                       "The member of the cluster that opens the log as "
                       "primary; default: the first that may be primary");
  AddFlag(
      command, "--take-over", &arguments->take_over,
      "Open the cluster's log even if a primary writes it; that primary ends");
  AddWhatOptions(command, arguments.get());
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunCleanup(*arguments));
    };
  });
}

}  // namespace alpheus::cli
