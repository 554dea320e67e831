// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/writers/cluster_writer.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"

namespace alpheus::demo {
namespace {

// How often the nodes are looked after while a writer is listened to.
constexpr int64_t kCheckNanos = 100'000'000;

// Text after the number of replicas in its reports.
constexpr char kReplicasInSync[] = " replicas are in sync";
// Texts around the number of records that it had taken when it lost the log.
constexpr std::string_view kTook = "; it took ";
constexpr std::string_view kRecords = " records from its input";
// Text before the epoch of which it is primary.
constexpr std::string_view kIsPrimary = " is primary, in epoch ";
constexpr std::string_view kStands = " stands for primary";
constexpr std::string_view kHandsOver = " is to hand over";

Program ProgramOf(const Cluster& cluster, const ClusterWriterPlan& plan) {
  // A region whose process was killed is not served until its node takes it
  // over, which takes its time on a busy machine: it is waited for.
  std::vector<std::string> arguments = {"--open-timeout-ms",
                                        "60000",
                                        "--node",
                                        absl::StrCat(plan.node),
                                        "--log",
                                        plan.log,
                                        "--threads",
                                        absl::StrCat(plan.threads),
                                        "--ack"};
  if (plan.has_own_replica) {
    arguments.insert(arguments.end(),
                     {"--file", cluster.region(plan.node, plan.log)});
  }
  if (plan.stands) arguments.push_back("--stand");
  arguments.insert(arguments.end(), plan.options.begin(), plan.options.end());
  Program program = cluster.Alpheus("append", arguments);
  if (plan.cluster_file.empty()) return program;
  std::replace(program.argv.begin(), program.argv.end(), cluster.file(),
               plan.cluster_file);
  return program;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterWriter>> ClusterWriter::Start(
    Cluster* cluster, const Feed* feed, const ClusterWriterPlan& plan) {
  ALPHEUS_ASSIGN_OR_RETURN(ChildProcess process,
                           ChildProcess::Start(ProgramOf(*cluster, plan)));
  return std::unique_ptr<ClusterWriter>(
      new ClusterWriter(cluster, std::move(process), feed, plan));
}

ClusterWriter::ClusterWriter(Cluster* cluster, ChildProcess process,
                             const Feed* feed, const ClusterWriterPlan& plan)
    : cluster_(*cluster),
      plan_(plan),
      process_(std::move(process)),
      writer_(&process_, feed, plan.first_number, plan.limits),
      start_nanos_(Clock::Real().NowNanos()) {
  writer_.FillInput();
}

absl::StatusOr<bool> ClusterWriter::RunUntil(uint64_t ack_count,
                                             int64_t timeout_nanos) {
  const int64_t end = Clock::Real().NowNanos() + timeout_nanos;
  for (;;) {
    const int64_t left = end - Clock::Real().NowNanos();
    if (this->ack_count() >= ack_count) return true;
    if (has_ended_output_ || left <= 0) return false;
    ALPHEUS_RETURN_IF_ERROR(ListenAndFeed(std::min(left, kCheckNanos)));
  }
}

absl::StatusOr<ProcessEnd> ClusterWriter::RunToEnd(int64_t timeout_nanos) {
  const int64_t end = Clock::Real().NowNanos() + timeout_nanos;
  int64_t left = timeout_nanos;
  while (!has_ended_output_ && left > 0) {
    ALPHEUS_RETURN_IF_ERROR(ListenAndFeed(std::min(left, kCheckNanos)));
    left = end - Clock::Real().NowNanos();
  }
  if (!end_) end_ = process_.WaitFor(std::max<int64_t>(left, 0));
  if (!end_) {
    return absl::DeadlineExceededError(absl::StrCat(
        ToString(), " did not end; it said: ", said(), "\n", cluster_.Story()));
  }
  writer_.DrainAfterDeath();
  ALPHEUS_RETURN_IF_ERROR(TakeWhatItSaid());
  return *end_;
}

absl::Status ClusterWriter::ListenUntilNow() {
  writer_.ReadUntilNow();
  return TakeWhatItSaid();
}

bool ClusterWriter::has_all_in_sync() const {
  const size_t last = said().rfind(kReplicasInSync);
  return last == std::string::npos ||
         absl::EndsWith(absl::string_view(said()).substr(0, last),
                        absl::StrCat(cluster_.node_count(), " of ",
                                     cluster_.node_count()));
}

absl::Status ClusterWriter::ListenAndFeed(int64_t timeout_nanos) {
  has_ended_output_ = !writer_.ListenAndFeed(timeout_nanos);
  ALPHEUS_RETURN_IF_ERROR(TakeWhatItSaid());
  if (!first_ack_nanos_ && ack_count() > 0) {
    first_ack_nanos_ = Clock::Real().NowNanos();
  }
  const int64_t now = Clock::Real().NowNanos();
  if (now < next_check_nanos_) return absl::OkStatus();
  next_check_nanos_ = now + kCheckNanos;
  return cluster_.CheckHealth();
}

absl::Status ClusterWriter::Kill() {
  if (end_) return absl::OkStatus();
  process_.Kill();
  end_ = process_.Wait();
  has_ended_output_ = true;
  writer_.DrainAfterDeath();
  return TakeWhatItSaid();
}

absl::Status ClusterWriter::TakeWhatItSaid() {
  for (;;) {
    const size_t begin = said().find(kTook, seen_bytes_);
    if (begin == std::string::npos) break;
    const size_t end = said().find(kRecords, begin);
    if (end == std::string::npos) break;  // the rest has not come
    seen_bytes_ = end;
    uint64_t taken = 0;
    const size_t number = begin + kTook.size();
    if (!absl::SimpleAtoi(said().substr(number, end - number), &taken)) {
      return absl::DataLossError(
          absl::StrCat(ToString(), " does not say how much it took: ", said()));
    }
    term_ends_.push_back(taken);
    writer_.Settle(taken);
  }
  return writer_.ReadAcknowledgements();
}

std::vector<uint64_t> ClusterWriter::Epochs() const {
  std::vector<uint64_t> epochs;
  for (size_t at = said().find(kIsPrimary); at != std::string::npos;
       at = said().find(kIsPrimary, at + 1)) {
    const size_t begin = at + kIsPrimary.size();
    const size_t end = said().find('\n', begin);
    uint64_t epoch = 0;
    if (end != std::string::npos &&
        absl::SimpleAtoi(said().substr(begin, end - begin), &epoch)) {
      epochs.push_back(epoch);
    }
  }
  return epochs;
}

bool ClusterWriter::HasTheLog() const {
  const size_t last = said().rfind(kIsPrimary);
  return last != std::string::npos &&
         said().find(kTook, last) == std::string::npos &&
         said().find(kHandsOver, last) == std::string::npos;
}

bool ClusterWriter::HasSaidThatItStands() const {
  return said().find(kStands) != std::string::npos;
}

WriterFacts ClusterWriter::Facts() const {
  return {.threads = plan_.threads,
          .first_number = plan_.first_number,
          .fed_count = writer_.fed_count(),
          .lsn_floor = plan_.lsn_floor,
          .acknowledgements = writer_.acknowledgements()};
}

std::vector<WriterFacts> ClusterWriter::Terms() const {
  std::vector<uint64_t> ends = term_ends_;
  ends.push_back(writer_.fed_count());
  std::vector<WriterFacts> terms;
  uint64_t begin = 0;
  uint64_t lsn_floor = plan_.lsn_floor;
  for (const uint64_t end : ends) {
    WriterFacts& term = terms.emplace_back();
    term.threads = plan_.threads;
    term.first_number = plan_.first_number + begin;
    term.first_index = begin;
    term.fed_count = end - std::min(begin, end);
    term.lsn_floor = lsn_floor;
    for (const Acknowledgement& ack : writer_.acknowledgements()) {
      const uint64_t index = ack.record.number - plan_.first_number;
      if (index < begin || index >= end) continue;
      term.acknowledgements.push_back(ack);
      lsn_floor = std::max(lsn_floor, ack.record.lsn);
    }
    begin = std::max(begin, end);
  }
  return terms;
}

std::string ClusterWriter::ToString() const {
  return absl::StrCat(
      plan_.stands ? "the candidate" : "the primary", " of node ", plan_.node,
      plan_.has_own_replica ? " with its own replica" : " without a replica");
}

}  // namespace alpheus::demo
