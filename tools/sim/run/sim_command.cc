// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/sim_command.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/io/progress.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/sim/run/seed_runner.h"
#include "tools/sim/run/sim_case.h"
#include "tools/sim/run/totals.h"

namespace alpheus::sim {
namespace {

using ::alpheus::cli::Json;
using ::alpheus::cli::ToLine;
using ::alpheus::cli::WriteAll;

constexpr double kNanosPerMinute = 60e9;
constexpr int64_t kShrinkNanosMax = 120'000'000'000;
// A drawn seed is short enough to be typed.
constexpr uint64_t kDrawnSeeds = 1'000'000'000'000;

absl::string_view Abseil(std::string_view text) {
  return {text.data(), text.size()};
}

// In the child, whose death loses no line.
void WriteTraceLine(std::string_view line) {
  const absl::Status status =
      WriteAll(STDOUT_FILENO, absl::StrCat(Abseil(line), "\n"));
  if (!status.ok()) _exit(EXIT_FAILURE);
}

SeedRunner::Options RunnerOptions(const SimArguments& arguments, bool trace) {
  SeedRunner::Options options;
  options.jobs =
      arguments.jobs != 0
          ? arguments.jobs
          : static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  if (trace) {
    options.simulation = [](const RunOptions& run) {
      return RunSeed(run, WriteTraceLine);
    };
  }
  return options;
}

// Reports a failing seed at once, as text or JSON, and its shortest schedule
// when that is found.
struct Failure {
  uint64_t seed = 0;
  Fixed fixed;
  Violation violation;
  std::optional<ShortestRun> shortest;
};

std::string ToText(const Failure& failure, const std::string& commit) {
  const RunOptions run = DrawOptions(failure.seed, failure.fixed);
  std::string text = absl::StrFormat(
      "seed %d violates %s at %d ns: %s\n  options: %s\n", failure.seed,
      failure.violation.invariant, failure.violation.at_ns,
      failure.violation.what, Describe(run));
  if (!commit.empty()) absl::StrAppend(&text, "  commit: ", commit, "\n");
  absl::StrAppend(
      &text, "  once more: ", CommandLine(failure.seed, failure.fixed), "\n");
  return text;
}

std::string ShortestToText(const Failure& failure) {
  const ShortestRun& shortest = *failure.shortest;
  std::string text = absl::StrCat(
      "seed ", failure.seed, ", shortest, found by ", shortest.tries,
      " runs: ", CommandLine(failure.seed, shortest.fixed),
      "\n  then: ", shortest.violation.what, "\n");
  const std::vector<Fault> faults =
      FaultsLeft(DrawOptions(failure.seed, shortest.fixed));
  if (faults.empty()) absl::StrAppend(&text, "  without any fault\n");
  for (const Fault& fault : faults) {
    absl::StrAppend(&text, "  fault ", Describe(fault), "\n");
  }
  return text;
}

std::string ToJson(const Failure& failure, const std::string& commit) {
  const RunOptions run = DrawOptions(failure.seed, failure.fixed);
  const Json json = {{"seed", failure.seed},
                     {"commit", commit},
                     {"invariant", failure.violation.invariant},
                     {"what", failure.violation.what},
                     {"at_ns", failure.violation.at_ns},
                     {"options", Describe(run)},
                     {"command", CommandLine(failure.seed, failure.fixed)}};
  return ToLine(json);
}

std::string ShortestToJson(const Failure& failure) {
  const ShortestRun& shortest = *failure.shortest;
  Json faults = Json::array();
  for (const Fault& fault :
       FaultsLeft(DrawOptions(failure.seed, shortest.fixed))) {
    faults.push_back(Describe(fault));
  }
  const Json json = {{"seed", failure.seed},
                     {"shortest",
                      {{"command", CommandLine(failure.seed, shortest.fixed)},
                       {"runs", shortest.tries},
                       {"what", shortest.violation.what},
                       {"faults", std::move(faults)}}}};
  return ToLine(json);
}

std::string ToJson(const Totals& totals, const std::string& commit) {
  const World::Counters& counters = totals.counters;
  Json faults = Json::object();
  for (size_t i = 0; i < kFaultKinds; ++i) {
    faults[std::string(FaultName(static_cast<FaultKind>(i)))] =
        counters.faults[i];
  }
  const Json json = {
      {"commit", commit},
      {"seeds", totals.seeds},
      {"violated", totals.violated},
      {"seeds_per_core_second", totals.PerCpuSecond(totals.seeds)},
      {"faults", totals.faults()},
      {"faults_per_seed", totals.PerSeed(totals.faults())},
      {"faults_by_class", std::move(faults)},
      {"calls", counters.calls},
      {"calls_per_seed", totals.PerSeed(counters.calls)},
      {"records_acknowledged", totals.acknowledged},
      {"records_checked", counters.records_checked},
      {"media_checks", counters.media_checks},
      {"records_on_media", counters.records_on_media},
      {"durability_checks", counters.durability_checks},
      {"landings_checked", counters.landings_checked},
      {"reports_checked", counters.reports_checked},
      {"mark_checks", counters.mark_checks},
      {"owners_checked", counters.owners_checked},
      {"records_compared", counters.records_compared},
      {"final_openings", counters.final_openings},
      {"ballots", counters.ballots},
      {"elections", counters.elections},
      {"stepped_down", counters.stepped_down},
      {"overtaken", counters.overtaken},
      {"openings", counters.openings},
      {"openings_failed", counters.openings_failed},
      {"repairs", counters.repairs},
      {"joins", counters.joins},
      {"joins_failed", counters.joins_failed},
      {"events", counters.events},
      {"events_per_core_second", totals.PerCpuSecond(counters.events)},
      {"virtual_ns", totals.virtual_ns},
      {"cpu_ns", totals.cpu_ns}};
  return ToLine(json);
}

class SimCommand {
 public:
  SimCommand(const SimArguments& arguments, Fixed fixed, SeedRange range)
      : arguments_(arguments),
        fixed_(std::move(fixed)),
        range_(range),
        next_(range.first),
        until_ns_(arguments.minutes == 0
                      ? 0
                      : clock_.NowNanos() +
                            static_cast<int64_t>(arguments.minutes *
                                                 kNanosPerMinute)),
        progress_("simulating", clock_) {}

  absl::Status Run() {
    SeedRunner runner(RunnerOptions(arguments_, arguments_.trace), clock_);
    ALPHEUS_RETURN_IF_ERROR(runner.RunAll(
        [this] { return Next(); },
        [this](const RunOptions& run, const SeedOutcome& outcome) {
          return Take(run, outcome);
        }));
    ALPHEUS_RETURN_IF_ERROR(output_);
    ALPHEUS_RETURN_IF_ERROR(Shorten());
    // A trace says the same each time.
    if (!arguments_.trace) {
      ALPHEUS_RETURN_IF_ERROR(Write(arguments_.json
                                        ? ToJson(totals_, arguments_.commit)
                                        : Describe(totals_)));
    }
    return Verdict();
  }

 private:
  static absl::Status Write(const std::string& text) {
    return WriteAll(STDOUT_FILENO, text);
  }

  std::optional<RunOptions> Next() {
    const bool is_over = until_ns_ != 0 && clock_.NowNanos() >= until_ns_;
    // At least one.
    if (is_done_ || (is_over && next_ != range_.first)) return std::nullopt;
    is_done_ = next_ == range_.last;
    return DrawOptions(next_++, fixed_);
  }

  bool Take(const RunOptions& run, const SeedOutcome& outcome) {
    totals_.Add(outcome);
    ShowProgress();
    if (!outcome.result.violation) return true;
    const Failure failure{run.seed, fixed_, *outcome.result.violation, {}};
    output_.Update(Write(arguments_.json ? ToJson(failure, arguments_.commit)
                                         : ToText(failure, arguments_.commit)));
    if (!first_) first_ = failure;
    return arguments_.keep_going && output_.ok();
  }

  void ShowProgress() {
    const uint64_t seeds = range_.last - range_.first;
    if (until_ns_ == 0 && seeds != 0) {
      progress_.ShowFraction(static_cast<double>(totals_.seeds) /
                             (static_cast<double>(seeds) + 1));
    }
  }

  // The shortest schedule of the first one.
  absl::Status Shorten() {
    // Each try of a hung one would take as long.
    if (!first_ || !arguments_.shrink || first_->violation.invariant == kHung) {
      return absl::OkStatus();
    }
    SeedRunner runner(RunnerOptions(arguments_, /*trace=*/false), clock_);
    ALPHEUS_ASSIGN_OR_RETURN(
        first_->shortest, FindShortest(first_->seed, fixed_, first_->violation,
                                       runner, clock_, kShrinkNanosMax));
    return Write(arguments_.json ? ShortestToJson(*first_)
                                 : ShortestToText(*first_));
  }

  absl::Status Verdict() const {
    if (!first_) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(
        totals_.violated, " of ", totals_.seeds, " seeds failed; seed ",
        first_->seed, " violates ", first_->violation.invariant));
  }

  const Clock& clock_ = Clock::Real();
  const SimArguments& arguments_;
  const Fixed fixed_;
  const SeedRange range_;
  uint64_t next_;
  bool is_done_ = false;
  const int64_t until_ns_;  // 0: no end
  cli::ProgressLine progress_;
  Totals totals_;
  std::optional<Failure> first_;
  absl::Status output_;
};

}  // namespace

absl::Status RunSim(const SimArguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const SeedRange range,
      SeedsOf(arguments, EntropyRandom().Below(kDrawnSeeds)));
  ALPHEUS_ASSIGN_OR_RETURN(Fixed fixed, FixedOf(arguments));
  return SimCommand(arguments, std::move(fixed), range).Run();
}

}  // namespace alpheus::sim
