// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "alpheus/cluster_tail.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/framing.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/log_source.h"
#include "tools/cli/source/wait_notice.h"

namespace alpheus::cli {
namespace {

// The longest time until a signal is noticed.
constexpr std::chrono::milliseconds kLook{100};

struct TailArguments {
  LogSource source;
  uint64_t from = 0;
  bool follow = false;
  std::string framing = "lines";
  bool json = false;
  uint32_t timeout_ms = 5'000;
};

volatile std::sig_atomic_t is_interrupted = 0;

void Interrupt(int /*signal*/) { is_interrupted = 1; }

// Text as it is, other bytes as hexadecimal digits.
void PutPayload(std::string_view payload, Json* json) {
  Json text = payload;
  try {
    (void)text.dump();  // only to see whether it is UTF-8
    (*json)["payload"] = std::move(text);
  } catch (const Json::type_error&) {
    (*json)["payload_hex"] = absl::BytesToHexString(
        absl::string_view(payload.data(), payload.size()));
  }
}

// Writes what a tail shows.
class TailWriter {
 public:
  TailWriter(Framing framing, bool json)
      : framing_(framing), json_(json), output_(STDOUT_FILENO) {}

  absl::Status Write(const TailRecord& record) {
    if (!json_) return WriteFrame(framing_, AsText(record.payload), &output_);
    Json json;
    json["lsn"] = record.lsn.value;
    json["epoch"] = record.epoch.value;
    json["length"] = record.payload.size();
    PutPayload(AsText(record.payload), &json);
    return output_.Write(ToLine(json));
  }

  // Nothing new: flushes the output, and reports if it may not be all.
  absl::Status Rest(const ClusterTail& tail) {
    if (json_ && tail.is_caught_up() && tail.durable_lsn() != reported_) {
      reported_ = tail.durable_lsn();
      Json json;
      json["durable_lsn"] = reported_->value;
      ALPHEUS_RETURN_IF_ERROR(output_.Write(ToLine(json)));
    }
    return output_.Flush();
  }

 private:
  const Framing framing_;
  const bool json_;
  std::optional<Lsn> reported_;
  Output output_;
};

// Reports once that the tail may lag, and once that this is over.
class DoubtReporter {
 public:
  explicit DoubtReporter(uint32_t timeout_ms) : timeout_(timeout_ms) {}

  void Check(const ClusterTail& tail) {
    const absl::Status doubt =
        tail.is_settled() ? tail.doubt() : absl::OkStatus();
    if (doubt.ok()) {
      if (is_reported_) {
        std::fprintf(stderr,
                     "alpheus: enough nodes can be reached again to know all "
                     "durable records\n");
      }
      until_ = Deadline::In(timeout_);
      is_reported_ = false;
    } else if (!is_reported_ &&
               Deadline::In({}).at_nanos() >= until_.at_nanos()) {
      is_reported_ = true;
      std::fprintf(stderr,
                   "alpheus: shown up to LSN %llu; the command continues: %s\n",
                   static_cast<unsigned long long>(tail.next_lsn().value - 1),
                   std::string(doubt.message()).c_str());
    }
  }

 private:
  const std::chrono::milliseconds timeout_;
  Deadline until_ = Deadline::In(timeout_);
  bool is_reported_ = false;
};

// Returns the error for durable records that no reachable node can give, or
// that are not known.
absl::Status Stuck(const TailArguments& arguments, const ClusterTail& tail) {
  const absl::Status doubt = tail.doubt();
  if (!doubt.ok() && tail.next_lsn() > tail.durable_lsn()) {
    return {doubt.code(), absl::StrCat(doubt.message(),
                                       ". The known records were shown, up to ",
                                       "LSN ", tail.durable_lsn().value)};
  }
  return absl::UnavailableError(absl::StrCat(
      "log ", arguments.source.log, ": LSN ", tail.next_lsn().value,
      " was not received for ", arguments.timeout_ms,
      " ms; the log is durable for certain ", "up to LSN ",
      tail.durable_lsn().value,
      "; `alpheus status --cluster FILE --log NAME` names the nodes"));
}

absl::Status Show(const TailArguments& arguments, ClusterTail& tail,
                  TailWriter& writer) {
  const auto in_time = [&arguments] {
    return Deadline::In(std::chrono::milliseconds(arguments.timeout_ms));
  };
  Deadline until = in_time();
  DoubtReporter teller(arguments.timeout_ms);
  std::optional<WaitNotice> notice(
      std::in_place, arguments.source,
      absl::StrCat(arguments.follow
                       ? "the records that they have are shown after "
                       : "it gives up after ",
                   arguments.timeout_ms, " ms (--timeout-ms)"));
  while (is_interrupted == 0) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::optional<TailRecord> record,
                             tail.Next(Deadline::In(kLook)));
    if (record || tail.is_caught_up()) notice.reset();
    if (record) {
      ALPHEUS_RETURN_IF_ERROR(writer.Write(*record));
      until = in_time();
      continue;
    }
    ALPHEUS_RETURN_IF_ERROR(writer.Rest(tail));
    if (arguments.follow) {
      teller.Check(tail);
      continue;
    }
    if (tail.is_caught_up()) return absl::OkStatus();
    const bool is_late = Deadline::In({}).at_nanos() >= until.at_nanos();
    if (is_late) return Stuck(arguments, tail);
  }
  return absl::OkStatus();
}

// Prints the next --from for a script. Nothing if no node answered.
void ReportWhereToContinue(const ClusterTail& tail, const absl::Status& shown) {
  const bool is_cleaned = absl::IsOutOfRange(shown);
  const Lsn next = is_cleaned ? tail.head_lsn() : tail.next_lsn();
  if (next == Lsn(0)) return;
  std::fprintf(stderr, "alpheus: next LSN %llu, durable up to LSN %llu\n",
               static_cast<unsigned long long>(next.value),
               static_cast<unsigned long long>(tail.durable_lsn().value));
}

absl::Status RunTail(const TailArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Framing framing,
                           ParseFraming(arguments.framing));
  ClusterTailOptions options;
  options.cluster_file = arguments.source.cluster;
  options.log_name = arguments.source.log;
  options.node = arguments.source.node;
  options.from = Lsn(arguments.from);
  options.timeout_ms = arguments.timeout_ms;
  options.say = SayOnStandardError;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterTail> tail,
                           ClusterTail::Open(options));
  std::signal(SIGINT, Interrupt);
  std::signal(SIGTERM, Interrupt);
  TailWriter writer(framing, arguments.json);
  absl::Status shown = Show(arguments, *tail, writer);
  // Records before the error are worth having.
  const absl::Status flushed = writer.Rest(*tail);
  ReportWhereToContinue(*tail, shown);
  return shown.ok() ? flushed : shown;
}

}  // namespace

void AddTailCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<TailArguments>();
  CLI::App* command = AddCommand(
      app, "tail",
      {.purpose = "Write durable payloads of a cluster's log",
       .about = "Writes the payloads of the durable records to standard "
                "output, in LSN order. With --follow it also writes those that "
                "become durable later, until it is interrupted. Reads only.\n"
                "Does not keep records from being cleaned. If a node goes "
                "away, the command continues with another one. With --follow "
                "it also continues if too few nodes can be reached, and "
                "reports this on standard error.\n"
                "Records that it has written stay valid, even if the cluster "
                "fails. At the end it names on standard error the LSN with "
                "which to continue (--from). If that one was cleaned, it names "
                "the LSN at which the log begins. It names none if no node "
                "answered for the log.",
       .good = "all durable records were shown, or it was interrupted",
       .failed =
           "a record was cleaned before it was read (the command names the LSN "
           "at which the log begins); a node shows that the members changed "
           "since the cluster file was written; or anything else",
       .unavailable = "no node can be reached, or so few that all of them may "
                      "have missed records that the others acknowledged"});
  AddClusterOptions(command, &arguments->source);
  FindOption(command, "--cluster").Required();
  AddNodeOption(command, &arguments->source,
                "Ask only this node of the cluster; it may know of fewer "
                "durable records");
  AddOption(command, "--from", &arguments->from,
            "First LSN to show; 0: the oldest in the log")
      .Decimal()
      .ShowDefault();
  AddFlag(command, "--follow", &arguments->follow,
          "Continue with records that become durable later");
  AddFramingOption(command, &arguments->framing);
  AddOption(command, "--timeout-ms", &arguments->timeout_ms,
            "How long to wait for a node, or for any node")
      .Decimal()
      .Range(uint32_t{100}, uint32_t{3'600'000})
      .ShowDefault();
  AddFlag(command, "--json", &arguments->json,
          "Instead of payloads one JSON object per line: lsn, epoch, "
          "length, payload (payload_hex if it is not UTF-8); and "
          "durable_lsn alone whenever there is nothing more");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunTail(*arguments));
    };
  });
}

}  // namespace alpheus::cli
