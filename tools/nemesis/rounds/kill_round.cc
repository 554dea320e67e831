// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/rounds/kill_round.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "tools/nemesis/oracles/log_output.h"

namespace alpheus::demo {
namespace {

// One kill in this many comes while the victim still opens the log.
constexpr uint64_t kEarlyKillOneIn = 8;
// Typical time of starting, recovering and opening an epoch.
constexpr uint64_t kEarlyKillNanosMax = 20'000'000;

}  // namespace

std::string KilledRegion::path() const {
  return absl::StrCat(options_.directory, "/region");
}

std::string KilledRegion::killed_copy_path() const {
  return absl::StrCat(options_.directory, "/region.as-killed");
}

Program KilledRegion::Alpheus(const std::vector<std::string>& arguments) const {
  Program program;
  program.argv = {options_.binary};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  if (flush_path_ == FlushPath::kCpu) {
    program.environment = {"PMEM_IS_PMEM_FORCE=1"};
  } else if (flush_path_ == FlushPath::kMsync) {
    program.environment = {"PMEM_IS_PMEM_FORCE=0"};
  }
  return program;
}

absl::StatusOr<std::string> KilledRegion::MustSucceed(
    const std::vector<std::string>& arguments) const {
  ALPHEUS_ASSIGN_OR_RETURN(ProgramResult result,
                           RunProgram(Alpheus(arguments)));
  if (result.end.exit_status == 0) return std::move(result.output);
  return absl::DataLossError(
      absl::StrCat("alpheus ", absl::StrJoin(arguments, " "), ": ",
                   result.end.ToString(), ": ", result.error));
}

absl::Status KilledRegion::Format() {
  std::error_code ignored;  // that there is none yet
  std::filesystem::remove(path(), ignored);
  survivors_.clear();
  ALPHEUS_ASSIGN_OR_RETURN(
      const ProgramResult result,
      RunProgram(Alpheus({"format", "--file", path(), "--size",
                          absl::StrCat(options_.region_bytes)})));
  if (result.end.exit_status == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(result.error);
}

absl::StatusOr<RoundReport> KilledRegion::RunRound(FlushPath flush_path) {
  flush_path_ = flush_path;
  RoundReport report;
  report.plan = DrawPlan();
  ALPHEUS_ASSIGN_OR_RETURN(const KillOutcome outcome,
                           KillMidStream(report.plan));
  report.alive_nanos = outcome.alive_nanos;
  report.acknowledged_count = outcome.acknowledgements.size();
  ALPHEUS_RETURN_IF_ERROR(KeepCopy());
  ALPHEUS_ASSIGN_OR_RETURN(report.tail_verdict, Verify());
  ALPHEUS_ASSIGN_OR_RETURN(const std::string framed, ReadPayloads());
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<RecoveredRecord> recovered,
                           AddLsns(framed));
  ALPHEUS_ASSIGN_OR_RETURN(report.recovery_nanos, Recover());
  ALPHEUS_RETURN_IF_ERROR(CheckRepeatable(framed));
  ALPHEUS_RETURN_IF_ERROR(Judge(outcome, std::move(recovered), &report));
  return report;
}

KillPlan KilledRegion::DrawPlan() {
  KillPlan plan;
  const bool early =
      options_.kills_early && random_.Below(kEarlyKillOneIn) == 0;
  plan.ack_count = early ? 0 : 1 + random_.Below(options_.ack_count_max);
  plan.delay_nanos = static_cast<int64_t>(
      random_.Below(early ? kEarlyKillNanosMax : options_.delay_nanos_max + 1));
  // A quarter stays free, for PADs and records in flight.
  const uint64_t usable = options_.region_bytes / 4 * 3;
  plan.ring_bytes_max = usable - std::min(usable, SurvivorRingBytes());
  return plan;
}

uint64_t KilledRegion::SurvivorRingBytes() const {
  uint64_t bytes = 0;
  for (const PlacedRecord& record : survivors_) {
    bytes += RecordBytes(feed_.Record(record.number).size());
  }
  return bytes;
}

absl::StatusOr<KillOutcome> KilledRegion::KillMidStream(const KillPlan& plan) {
  ALPHEUS_ASSIGN_OR_RETURN(
      ChildProcess child,
      ChildProcess::Start(Alpheus({"append", "--file", path(), "--threads",
                                   absl::StrCat(options_.threads), "--ack"})));
  Victim victim(&child, &feed_, next_number_, plan);
  ALPHEUS_ASSIGN_OR_RETURN(KillOutcome outcome, victim.RunUntilKilled());
  if (!outcome.misbehaviour) return outcome;
  return absl::DataLossError(
      absl::StrCat("alpheus append ", *outcome.misbehaviour));
}

absl::Status KilledRegion::KeepCopy() const {
  std::error_code error;
  std::filesystem::copy_file(path(), killed_copy_path(),
                             std::filesystem::copy_options::overwrite_existing,
                             error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(killed_copy_path(), ": ", error.message()));
}

absl::StatusOr<std::string> KilledRegion::Verify() const {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string output,
                           MustSucceed({"verify", "--file", path(), "--json"}));
  return TextIn(output, "verdict");
}

absl::StatusOr<std::string> KilledRegion::ReadPayloads() const {
  return MustSucceed({"cat", "--file", path(), "--framing", "len32"});
}

absl::StatusOr<std::vector<RecoveredRecord>> KilledRegion::AddLsns(
    const std::string& framed) const {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string lines,
                           MustSucceed({"cat", "--file", path(), "--json"}));
  return ParseRecords(framed, lines);
}

absl::StatusOr<int64_t> KilledRegion::Recover() const {
  const int64_t start = Clock::Real().NowNanos();
  ALPHEUS_RETURN_IF_ERROR(MustSucceed({"append", "--file", path()}).status());
  return Clock::Real().NowNanos() - start;
}

absl::Status KilledRegion::CheckRepeatable(const std::string& before) const {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string after, ReadPayloads());
  if (after != before) {
    return absl::DataLossError(
        absl::StrCat("opening the log changed what it holds: ", before.size(),
                     " framed bytes before, ", after.size(), " after"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(const std::string verdict, Verify());
  if (verdict == "complete") return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("verify after recovery: verdict ", verdict));
}

absl::Status KilledRegion::Judge(const KillOutcome& outcome,
                                 std::vector<RecoveredRecord> recovered,
                                 RoundReport* report) {
  KillFacts facts;
  facts.threads = options_.threads;
  facts.survivors = std::move(survivors_);
  facts.first_number = next_number_;
  facts.fed_count = outcome.fed_count;
  facts.acknowledgements = outcome.acknowledgements;
  facts.recovered = std::move(recovered);
  report->judgement = JudgeRecovery(feed_, facts);
  survivors_ = report->judgement.survivors;
  next_number_ += outcome.fed_count;
  if (report->judgement.holds()) return absl::OkStatus();
  return absl::DataLossError(absl::StrJoin(report->judgement.violations, "\n"));
}

absl::Status KilledRegion::CleanupIfFull() {
  if (SurvivorRingBytes() < options_.region_bytes / 3) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(
      MustSucceed({"cleanup", "--file", path(), "--all"}).status());
  survivors_.clear();
  ALPHEUS_ASSIGN_OR_RETURN(const std::string framed, ReadPayloads());
  if (framed.empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("cleanup --all: ", framed.size(),
                                          " framed bytes are still there"));
}

}  // namespace alpheus::demo
