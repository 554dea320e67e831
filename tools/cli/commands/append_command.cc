// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/event_descriptor.h"
#include "tools/cli/io/framing.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/progress.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/io/standing_options.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/source/wait_notice.h"
#include "tools/cli/write/append_workers.h"
#include "tools/cli/write/member_watch.h"

namespace alpheus::cli {
namespace {

struct AppendArguments {
  LogSource source;  // of a cluster's log: the file is the node's own replica
  std::string framing = "lines";
  int threads = 1;
  uint32_t frequency = 1;
  bool ack = false;
  uint32_t open_timeout_ms = 10'000;  // these two as in ReplicationOptions
  uint32_t ack_timeout_ms = 1'000;
  bool stand = false;
  StandingArguments standing;
};

std::string NameOf(const LogSource& source) {
  return source.is_cluster() ? absl::StrCat("log ", source.log) : source.file;
}

LogOptions LogOptionsOf(const AppendArguments& arguments) {
  LogOptions options;
  options.path = arguments.source.file;
  if (arguments.source.is_cluster()) {
    options.replication.cluster_file = arguments.source.cluster;
    options.replication.log_name = arguments.source.log;
    options.replication.node = arguments.source.node;
    options.replication.open_timeout_ms = arguments.open_timeout_ms;
    options.replication.ack_timeout_ms = arguments.ack_timeout_ms;
    options.replication.say = SayOnStandardError;
  }
  options.exposure_records_max =
      std::max(options.exposure_records_max, 2 * arguments.frequency);
  return options;
}

absl::StatusOr<std::unique_ptr<Log>> OpenLog(const AppendArguments& arguments) {
  const LogOptions options = LogOptionsOf(arguments);
  absl::StatusOr<std::unique_ptr<Log>> log = [&] {
    const WaitNotice notice(
        arguments.source,
        absl::StrCat("it gives up after ",
                     options.replication.open_timeout_ms / 1000,
                     " s (--open-timeout-ms); with --file it may wait as long "
                     "again for the file"));
    return Log::Open(options);
  }();
  if (log.ok() || !arguments.source.is_cluster()) return log;
  // Others know the log by its identity, the user by its name.
  return absl::Status(
      log.status().code(),
      absl::StrCat(NameOf(arguments.source), ": ", log.status().message()));
}

// Opening is silent unless it cut or repaired something, its adapter can't
// write to the replica itself, or there is something to know of the medium, the
// membership service or the numbers of epochs.
void ReportRecovery(const LogSource& source, const RecoveryReport& report) {
  if (report.verdict == RecoveryVerdict::kComplete && report.repairs.empty() &&
      report.shadow.empty() && report.medium_warning.empty() &&
      report.membership_warning.empty() && report.ballot_warning.empty()) {
    return;
  }
  std::fprintf(stderr, "alpheus: %s: %s\n", NameOf(source).c_str(),
               Spelled(source, report.ToString()).c_str());
}

// Returns true at the end of the input, false once a worker has failed. Errors:
// the input's; Cancelled (it is to stop). It is asked for each record: the
// reader may have thousands that it has read already.
absl::StatusOr<bool> FeedRecords(FrameReader* reader, AppendWorkers* workers,
                                 absl::FunctionRef<bool()> is_to_stop) {
  ProgressLine progress("appending");
  std::string record;
  for (uint64_t fed = 1;; ++fed) {
    if (is_to_stop()) return absl::CancelledError("the input is to wait");
    ALPHEUS_ASSIGN_OR_RETURN(const bool found, reader->Next(&record));
    if (!found) return true;
    if (!workers->Push(std::move(record))) return false;
    progress.ShowCount(fed);
  }
}

AppendWorkersOptions WorkersOptionsOf(const AppendArguments& arguments) {
  AppendWorkersOptions options;
  options.threads = arguments.threads;
  options.frequency = arguments.frequency;
  options.ack_fd = arguments.ack ? STDOUT_FILENO : -1;
  options.when_full =
      absl::StrCat("`alpheus cleanup ", AsOptions(arguments.source),
                   " --through LSN` frees space, where LSN is the last record "
                   "that nobody needs");
  return options;
}

absl::Status WithWhatIsInTheLog(const AppendArguments& arguments,
                                const absl::Status& failure, Lsn begin,
                                const Log& log) {
  return absl::Status(
      failure.code(),
      absl::StrCat(
          absl::StripSuffix(failure.message(), "."), ". ",
          WhatIsInTheLog(
              absl::StrCat("`alpheus cat ", AsOptions(arguments.source), "`"),
              begin, log.durable_lsn(), log.next_lsn())));
}

absl::Status AppendInput(const AppendArguments& arguments, Framing framing,
                         Log* log) {
  const MemberWatch watch(*log, NameOf(arguments.source),
                          [&arguments](const std::string& text) {
                            return Spelled(arguments.source, text);
                          });
  const Lsn begin = log->next_lsn();
  AppendWorkers workers(log, WorkersOptionsOf(arguments));
  Input input(STDIN_FILENO, workers.failure_fd());
  const std::unique_ptr<FrameReader> reader =
      MakeFrameReader(framing, &input, log->payload_bytes_max());
  const absl::Status fed =
      FeedRecords(reader.get(), &workers, [] { return false; }).status();
  const absl::Status finished = workers.Finish();
  const absl::Status& failure = finished.ok() ? fed : finished;
  if (failure.ok()) return failure;
  return WithWhatIsInTheLog(arguments, failure, begin, *log);
}

// Appends its input while this process is primary, and waits while another one
// is. Records that were taken from the input when the log is lost are told, and
// not appended again: some may be in the log.
class StandingAppend {
 public:
  StandingAppend(const AppendArguments& arguments, Framing framing)
      : arguments_(arguments),
        framing_(framing),
        input_(STDIN_FILENO, stop_.fd()) {}

  absl::Status Run() {
    CandidateOptions options;
    options.log = LogOptionsOf(arguments_);
    SetStanding(arguments_.standing, &options);
    options.say = [this](const std::string& sentence) {
      SayOnStandardError(Spelled(arguments_.source, sentence));
    };
    options.on_change = [this] { stop_.Set(); };
    ALPHEUS_ASSIGN_OR_RETURN(candidate_, Candidate::Stand(options));
    for (;;) {
      ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<Log> log,
                               candidate_->WaitForLog());
      ReportRecovery(arguments_.source, log->report());
      ALPHEUS_ASSIGN_OR_RETURN(const bool is_over, Lead(std::move(log)));
      if (is_over) return absl::OkStatus();
    }
  }

  Lsn durable() const { return durable_; }

 private:
  // Returns true at the end of the input.
  absl::StatusOr<bool> Lead(std::shared_ptr<Log> log) {
    const Lsn begin = log->next_lsn();
    absl::StatusOr<bool> fed = false;
    absl::Status failure = Append(log.get(), &fed);
    const bool is_end = fed.ok() && *fed;
    if (failure.ok() && !absl::IsCancelled(fed.status())) {
      failure = fed.status();
    }
    if (!failure.ok()) {
      failure = WithWhatIsInTheLog(arguments_, failure, begin, *log);
    }
    durable_ = log->durable_lsn();
    const absl::Status closed = candidate_->GiveBack(std::move(log));
    if (absl::IsAborted(failure) && !is_end) {
      SayLost(failure);
      return false;
    }
    if (!failure.ok()) return failure;
    if (!absl::IsAborted(closed)) {
      ALPHEUS_RETURN_IF_ERROR(closed);
      return is_end;
    }
    // All that was appended was durable before the log failed.
    SayLost(closed);
    return is_end;
  }

  // Errors: the input's; Cancelled (the log is to be given back).
  absl::StatusOr<bool> FeedWhilePrimary(AppendWorkers* workers) {
    for (;;) {
      // The checks that follow see all that happened before.
      stop_.Clear();
      if (candidate_->must_give_back()) {
        return absl::CancelledError("the log is to be given back");
      }
      if (workers->has_failed()) return false;
      absl::StatusOr<bool> fed = FeedRecords(reader_.get(), workers, [this] {
        return candidate_->must_give_back();
      });
      // The event also says that this process has become primary.
      if (!absl::IsCancelled(fed.status())) return fed;
    }
  }

  void SayLost(const absl::Status& why) const {
    SayOnStandardError(
        absl::StrCat(NameOf(arguments_.source), ": node ",
                     arguments_.source.node, " is no longer primary; it took ",
                     next_index_, " records from its input: ",
                     Spelled(arguments_.source, std::string(why.message()))));
  }

  absl::Status Append(Log* log, absl::StatusOr<bool>* fed) {
    const MemberWatch watch(*log, NameOf(arguments_.source),
                            [this](const std::string& text) {
                              return Spelled(arguments_.source, text);
                            });
    AppendWorkersOptions options = WorkersOptionsOf(arguments_);
    options.first_index = next_index_;
    options.failure_fd = stop_.fd();
    AppendWorkers workers(log, options);
    if (reader_ == nullptr) {
      reader_ = MakeFrameReader(framing_, &input_, log->payload_bytes_max());
    }
    *fed = FeedWhilePrimary(&workers);
    absl::Status finished = workers.Finish();
    next_index_ = workers.next_index();
    return finished;
  }

  const AppendArguments& arguments_;
  const Framing framing_;
  const EventDescriptor stop_;
  Input input_;
  std::unique_ptr<Candidate> candidate_;
  std::unique_ptr<FrameReader> reader_;
  uint64_t next_index_ = 0;
  Lsn durable_;
};

// A wrong path would be noticed only when this process is elected.
absl::Status CheckHasReplica(const LogSource& source) {
  std::error_code error;
  if (source.file.empty() || std::filesystem::exists(source.file, error)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat(
      source.file, ": there is no such file, expected the replica of node ",
      source.node, ": ", source.log,
      ".alpheus in the directory of its alpheusd. If it was lost, `alpheus "
      "replace ",
      AsOptions(source), " --node ", source.node, "` makes a new one"));
}

absl::Status RunStandingAppend(const AppendArguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(CheckHasReplica(arguments.source));
  ALPHEUS_ASSIGN_OR_RETURN(const Framing framing,
                           ParseFraming(arguments.framing));
  StandingAppend standing(arguments, framing);
  ALPHEUS_RETURN_IF_ERROR(standing.Run());
  return WriteAll(STDOUT_FILENO, absl::StrCat(arguments.ack ? "durable " : "",
                                              standing.durable().value, "\n"));
}

absl::Status RunAppend(const AppendArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Framing framing,
                           ParseFraming(arguments.framing));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log, OpenLog(arguments));
  ReportRecovery(arguments.source, log->report());
  absl::Status appended = AppendInput(arguments, framing, log.get());
  const Lsn durable = log->durable_lsn();
  absl::Status closed = log->Close();
  absl::Status explained = WriteAll(
      STDOUT_FILENO,
      absl::StrCat(arguments.ack ? "durable " : "", durable.value, "\n"));
  for (const absl::Status& status : {appended, closed}) {
    if (!status.ok()) return status;
  }
  return explained;
}

void AddStand(CLI::App* command, AppendArguments* arguments) {
  AddFlag(command, "--stand", &arguments->stand,
          "Stand for primary: append while this process is primary, and wait "
          "while another one is. When the log is lost, records that were taken "
          "from the input are not appended again")
      .Needs(FindOption(command, "--cluster"));
  AddStandingOptions(command, &arguments->standing);
}

}  // namespace

void AddAppendCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<AppendArguments>();
  CLI::App* command = AddCommand(
      app, "append",
      {.purpose = "Append records from standard input",
       .about = "Prints the durable LSN at the end: all records up to it "
                "survive any crash.",
       .unavailable =
           "a medium, a quorum or a node can't be reached; the outcome of the "
           "last records is unknown until the log is opened again"});
  AddWriteSourceOptions(command, &arguments->source);
  AddFramingOption(command, &arguments->framing);
  AddOption(command, "--threads", &arguments->threads,
            "Number of appending threads; record i goes to thread i mod N, and "
            "each thread keeps the order of its records")
      .Decimal()
      .Range(1, kThreadsMax)
      .ShowDefault();
  AddOption(command, "--frequency", &arguments->frequency,
            "Force only LSNs divisible by this number; a crash may then lose "
            "up to that many of the last records. With 1 and without --ack, "
            "records that arrive together are forced together")
      .Decimal()
      .Range(uint32_t{1}, kFrequencyMax)
      .ShowDefault();
  AddFlag(command, "--ack", &arguments->ack,
          "Print '<lsn> <record index> <thread>' for each record as "
          "soon as it is durable, and 'durable <lsn>' at the end; records "
          "and threads count from 0");
  AddOption(command, "--open-timeout-ms", &arguments->open_timeout_ms,
            "How long to try to open a cluster's log")
      .Needs(FindOption(command, "--cluster"))
      .Decimal()
      .Range(uint32_t{1}, kTimeoutMillisMax)
      .ShowDefault();
  AddOption(command, "--ack-timeout-ms", &arguments->ack_timeout_ms,
            "How long a node may leave records unacknowledged before it no "
            "longer counts; with fewer than W left the command ends. A node "
            "whose connection breaks is not waited for")
      .Needs(FindOption(command, "--cluster"))
      .Decimal()
      .Range(uint32_t{1}, kTimeoutMillisMax)
      .ShowDefault();
  AddStand(command, arguments.get());
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, arguments->stand
                                            ? RunStandingAppend(*arguments)
                                            : RunAppend(*arguments));
    };
  });
}

}  // namespace alpheus::cli
