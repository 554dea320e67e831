// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/local_demo.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/cli/io/arguments.h"
#include "tools/nemesis/processes/millis.h"
#include "tools/nemesis/processes/work_directory.h"
#include "tools/nemesis/rounds/kill_round.h"

namespace alpheus::demo {
namespace {

constexpr uint64_t kManyRoundsRegionBytes = 4 << 20;
constexpr uint64_t kOneRoundRegionBytes = 64 << 20;
constexpr uint64_t kManyRoundsAcksMax = 100;
constexpr uint64_t kOneRoundAcksMax = 20'000;
// Rounds with one region before a fresh one is made.
constexpr uint64_t kRoundsPerRegion = 10;
constexpr uint64_t kRoundsPerReport = 100;

// Sums and extremes over the rounds.
struct Totals {
  uint64_t rounds = 0;
  uint64_t acknowledged = 0;
  uint64_t recovered = 0;
  uint64_t unacknowledged = 0;
  uint64_t early_kills = 0;  // before the first acknowledgement
  std::map<std::string, uint64_t> tail_verdicts;
  int64_t recovery_nanos_sum = 0;
  int64_t recovery_nanos_max = 0;

  void Add(const RoundReport& report) {
    ++rounds;
    acknowledged += report.acknowledged_count;
    recovered += report.judgement.recovered_count;
    unacknowledged += report.judgement.unacknowledged_count;
    early_kills += report.acknowledged_count == 0 ? 1 : 0;
    ++tail_verdicts[report.tail_verdict];
    recovery_nanos_sum += report.recovery_nanos;
    recovery_nanos_max = std::max(recovery_nanos_max, report.recovery_nanos);
  }
};

FlushPath FlushPathOf(const LocalDemoOptions& arguments, uint64_t round) {
  if (arguments.is_one_round()) return FlushPath::kAsIs;
  return round % 2 == 0 ? FlushPath::kCpu : FlushPath::kMsync;
}

absl::StatusOr<KillRoundOptions> OptionsOf(const LocalDemoOptions& arguments,
                                           const Feed& feed,
                                           const WorkDirectory& directory) {
  KillRoundOptions options;
  ALPHEUS_ASSIGN_OR_RETURN(const std::string own, OwnDirectory());
  options.binary = absl::StrCat(own, "/alpheus");
  options.directory = directory.path();
  options.threads = arguments.threads;
  options.kills_early = !arguments.is_one_round();
  options.region_bytes =
      arguments.is_one_round() ? kOneRoundRegionBytes : kManyRoundsRegionBytes;
  if (!arguments.size.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(options.region_bytes,
                             cli::ParseSize(arguments.size));
  }
  // The acknowledgements waited for must fit the ring several times over.
  const uint64_t fitting = std::max<uint64_t>(
      1, options.region_bytes / 8 / feed.mean_record_bytes());
  options.ack_count_max =
      std::min(fitting, arguments.is_one_round() ? kOneRoundAcksMax
                                                 : kManyRoundsAcksMax);
  return options;
}

void PrintStart(const LocalDemoOptions& arguments, const Feed& feed,
                const KillRoundOptions& options) {
  absl::PrintF("feed        %s, %d lines, again and again\n", arguments.file,
               feed.line_count());
  absl::PrintF("region      %s/region, %d bytes\n", options.directory,
               options.region_bytes);
  absl::PrintF("flushed by  %s\n",
               arguments.is_one_round()
                   ? "what the medium calls for"
                   : "CPU instructions and msync, in turn (on a file in memory "
                     "or in the page cache)");
  absl::PrintF("writer      alpheus append --ack with %d threads\n",
               options.threads);
  absl::PrintF("seed        %d\n", arguments.seed);
  std::fflush(stdout);
}

void PrintRound(const RoundReport& report) {
  const Judgement& judgement = report.judgement;
  absl::PrintF(
      "killed      %.3f ms after its start, at a moment drawn at random\n",
      Millis(report.alive_nanos));
  absl::PrintF("left        %s tail\n", report.tail_verdict);
  absl::PrintF(
      "recovered   in %.3f ms (a whole process: start, recover, open an "
      "epoch, close)\n",
      Millis(report.recovery_nanos));
  absl::PrintF("lines acknowledged               %d\n",
               report.acknowledged_count);
  absl::PrintF("lines recovered                  %d\n",
               judgement.recovered_count);
  absl::PrintF("unacknowledged but recovered     %d\n",
               judgement.unacknowledged_count);
}

// Only reached when nothing was violated: the oracle has counted zero.
void PrintZeros() {
  absl::PrintF("lost                             0\n");
  absl::PrintF("duplicated                       0\n");
  absl::PrintF("invented                         0\n");
  absl::PrintF("out of order                     0\n");
}

void PrintTotals(const Totals& totals) {
  absl::PrintF("kills                            %d\n", totals.rounds);
  absl::PrintF("  before the first acknowledged  %d\n", totals.early_kills);
  for (const auto& [verdict, count] : totals.tail_verdicts) {
    absl::PrintF("  that left a %-8s tail      %d\n", verdict, count);
  }
  absl::PrintF("lines acknowledged               %d\n", totals.acknowledged);
  absl::PrintF("lines recovered                  %d\n", totals.recovered);
  absl::PrintF("unacknowledged but recovered     %d\n", totals.unacknowledged);
  PrintZeros();
  absl::PrintF(
      "time to recover (whole process)  %.3f ms on average, %.3f ms at most\n",
      Millis(totals.recovery_nanos_sum) / static_cast<double>(totals.rounds),
      Millis(totals.recovery_nanos_max));
}

void PrintLimits() {
  absl::PrintF(
      "\nThis shows that killing the process loses nothing. It does not show\n"
      "what a power cut does: page cache and memory outlive a SIGKILL. Power\n"
      "cuts are tested by the crash model in tests/crash (tools/dev test).\n");
}

absl::Status RunRounds(const LocalDemoOptions& arguments, KilledRegion* region,
                       Totals* totals) {
  for (uint64_t round = 0; round < arguments.rounds; ++round) {
    if (round % kRoundsPerRegion == 0) {
      ALPHEUS_RETURN_IF_ERROR(region->Format());
    } else {
      ALPHEUS_RETURN_IF_ERROR(region->CleanupIfFull());
    }
    ALPHEUS_ASSIGN_OR_RETURN(const RoundReport report,
                             region->RunRound(FlushPathOf(arguments, round)));
    totals->Add(report);
    if (arguments.quiet) continue;
    if (arguments.is_one_round()) PrintRound(report);
    if (totals->rounds % kRoundsPerReport == 0) {
      absl::PrintF("%d of %d rounds, %d lines acknowledged, all there\n",
                   totals->rounds, arguments.rounds, totals->acknowledged);
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

void PrintSuccess(const LocalDemoOptions& arguments, const Totals& totals) {
  if (arguments.quiet) {
    absl::PrintF(
        "alpheus-demo: seed %d: %d kills, %d lines acknowledged, %d recovered, "
        "0 lost, 0 duplicated, 0 invented, 0 out of order\n",
        arguments.seed, totals.rounds, totals.acknowledged, totals.recovered);
    return;
  }
  if (arguments.is_one_round()) {
    PrintZeros();
  } else {
    PrintTotals(totals);
  }
  absl::PrintF("verdict     every acknowledged line is there\n");
  PrintLimits();
}

}  // namespace

absl::Status RunLocalDemo(const LocalDemoOptions& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Feed feed, Feed::Load(arguments.file));
  ALPHEUS_ASSIGN_OR_RETURN(WorkDirectory directory,
                           WorkDirectory::Create(arguments.directory));
  ALPHEUS_ASSIGN_OR_RETURN(const KillRoundOptions options,
                           OptionsOf(arguments, feed, directory));
  if (!arguments.quiet) PrintStart(arguments, feed, options);
  Random random(arguments.seed);
  KilledRegion region(options, &feed, &random);
  Totals totals;
  const absl::Status status = RunRounds(arguments, &region, &totals);
  if (status.ok()) PrintSuccess(arguments, totals);
  // Everything else means that the proof could not even be tried.
  if (!absl::IsDataLoss(status)) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("VIOLATED in round ", totals.rounds + 1, ", seed ",
                   arguments.seed, ":\n", status.message(),
                   "\nThe region is kept in ", directory.Keep(),
                   ": 'region' as it is now, 'region.as-killed' as the kill "
                   "left it"));
}

}  // namespace alpheus::demo
