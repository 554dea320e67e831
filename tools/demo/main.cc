// SPDX-License-Identifier: Apache-2.0
// alpheus-demo: proves that a killed writer loses nothing that it
// acknowledged. See kill_round.h and recovery_oracle.h.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "tools/cli/arguments.h"
#include "tools/demo/kill_round.h"

namespace alpheus::demo {
namespace {

constexpr uint64_t kManyRoundsRegionBytes = 4 << 20;
constexpr uint64_t kOneRoundRegionBytes = 64 << 20;
constexpr uint64_t kManyRoundsAcksMax = 100;
constexpr uint64_t kOneRoundAcksMax = 20'000;
// So many rounds go on with one region before a fresh one is made.
constexpr uint64_t kRoundsPerRegion = 10;
constexpr uint64_t kRoundsPerReport = 100;

struct Arguments {
  uint64_t rounds = 1;
  uint64_t threads = 4;
  std::optional<uint64_t> seed;
  std::string directory;
  std::string size;
  bool quiet = false;
  std::string file;

  bool is_one_round() const { return rounds == 1; }
};

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

double Millis(int64_t nanos) { return static_cast<double>(nanos) / 1e6; }

bool IsNonEmptyFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::file_size(path, error) > 0 && !error;
}

std::string DefaultFile() {
  const std::string log = "/var/log/dpkg.log";
  return IsNonEmptyFile(log) ? log : "/var/lib/dpkg/status";
}

std::string DefaultDirectory(const Arguments& arguments) {
  const char* memory = "/dev/shm";
  if (!arguments.is_one_round() && access(memory, W_OK | X_OK) == 0) {
    return memory;
  }
  std::error_code error;
  const std::filesystem::path temporary =
      std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : temporary.string();
}

// A directory of our own, removed at the end unless it holds evidence.
class WorkDirectory {
 public:
  static absl::StatusOr<WorkDirectory> Create(const std::string& parent) {
    std::string path = absl::StrCat(parent, "/alpheus-demo-XXXXXX");
    if (mkdtemp(path.data()) != nullptr) return WorkDirectory(path);
    return absl::FailedPreconditionError(absl::StrCat(
        parent, ": no directory can be made there; name another with --dir"));
  }
  WorkDirectory(WorkDirectory&& other) noexcept
      : path_(std::exchange(other.path_, "")) {}
  ~WorkDirectory() {
    std::error_code ignored;  // a leftover in a temporary directory
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Keep() { return std::exchange(path_, ""); }

 private:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

uint64_t DrawSeed() { return EntropyRandom().Next() % 1'000'000'000; }

FlushPath FlushPathOf(const Arguments& arguments, uint64_t round) {
  if (arguments.is_one_round()) return FlushPath::kAsIs;
  return round % 2 == 0 ? FlushPath::kCpu : FlushPath::kMsync;
}

absl::StatusOr<KillRoundOptions> OptionsOf(const Arguments& arguments,
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

void TellStart(const Arguments& arguments, const Feed& feed,
               const KillRoundOptions& options, uint64_t seed) {
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
  absl::PrintF("seed        %d\n", seed);
  std::fflush(stdout);
}

void TellRound(const RoundReport& report) {
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
void TellZeros() {
  absl::PrintF("lost                             0\n");
  absl::PrintF("duplicated                       0\n");
  absl::PrintF("invented                         0\n");
  absl::PrintF("out of order                     0\n");
}

void TellTotals(const Totals& totals) {
  absl::PrintF("kills                            %d\n", totals.rounds);
  absl::PrintF("  before the first acknowledged  %d\n", totals.early_kills);
  for (const auto& [verdict, count] : totals.tail_verdicts) {
    absl::PrintF("  that left a %-8s tail      %d\n", verdict, count);
  }
  absl::PrintF("lines acknowledged               %d\n", totals.acknowledged);
  absl::PrintF("lines recovered                  %d\n", totals.recovered);
  absl::PrintF("unacknowledged but recovered     %d\n", totals.unacknowledged);
  TellZeros();
  absl::PrintF(
      "time to recover (whole process)  %.3f ms on average, %.3f ms at most\n",
      Millis(totals.recovery_nanos_sum) / static_cast<double>(totals.rounds),
      Millis(totals.recovery_nanos_max));
}

void TellLimits() {
  absl::PrintF(
      "\nThis shows that killing the process loses nothing. It does not show\n"
      "what a power cut does: page cache and memory outlive a SIGKILL. Power\n"
      "cuts are tested by the crash model in tests/crash (tools/dev test).\n");
}

absl::Status RunRounds(const Arguments& arguments, KilledRegion* region,
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
    if (arguments.is_one_round()) TellRound(report);
    if (totals->rounds % kRoundsPerReport == 0) {
      absl::PrintF("%d of %d rounds, %d lines acknowledged, all there\n",
                   totals->rounds, arguments.rounds, totals->acknowledged);
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

void TellSuccess(const Arguments& arguments, const Totals& totals,
                 uint64_t seed) {
  if (arguments.quiet) {
    absl::PrintF(
        "alpheus-demo: seed %d: %d kills, %d lines acknowledged, %d recovered, "
        "0 lost, 0 duplicated, 0 invented, 0 out of order\n",
        seed, totals.rounds, totals.acknowledged, totals.recovered);
    return;
  }
  if (arguments.is_one_round()) {
    TellZeros();
  } else {
    TellTotals(totals);
  }
  absl::PrintF("verdict     every acknowledged line is there\n");
  TellLimits();
}

absl::Status RunDemo(const Arguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const Feed feed, Feed::Load(arguments.file));
  ALPHEUS_ASSIGN_OR_RETURN(WorkDirectory directory,
                           WorkDirectory::Create(arguments.directory));
  ALPHEUS_ASSIGN_OR_RETURN(const KillRoundOptions options,
                           OptionsOf(arguments, feed, directory));
  const uint64_t seed = arguments.seed ? *arguments.seed : DrawSeed();
  if (!arguments.quiet) TellStart(arguments, feed, options, seed);
  Random random(seed);
  KilledRegion region(options, &feed, &random);
  Totals totals;
  const absl::Status status = RunRounds(arguments, &region, &totals);
  if (status.ok()) TellSuccess(arguments, totals, seed);
  // Everything else means that the proof could not even be tried.
  if (!absl::IsDataLoss(status)) return status;
  return absl::Status(
      status.code(),
      absl::StrCat("VIOLATED in round ", totals.rounds + 1, ", seed ", seed,
                   ":\n", status.message(), "\nThe region is kept in ",
                   directory.Keep(),
                   ": 'region' as it is now, 'region.as-killed' as the kill "
                   "left it"));
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  app->add_option("FILE", arguments->file,
                  "File whose lines are fed; default /var/log/dpkg.log, or "
                  "/var/lib/dpkg/status");
  app->add_option("--rounds", arguments->rounds, "Number of kills")
      ->check(cli::DecimalNumber())
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
      ->capture_default_str();
  app->add_option("--threads", arguments->threads, "Appending threads")
      ->check(cli::DecimalNumber())
      ->check(CLI::Range(uint64_t{1}, uint64_t{256}))
      ->capture_default_str();
  app->add_option("--seed", arguments->seed,
                  "Repeats the random draws of a run (not its scheduling)")
      ->check(cli::DecimalNumber());
  app->add_option("--dir", arguments->directory,
                  "Where to make the region; default: the temporary directory, "
                  "with several rounds /dev/shm");
  app->add_option("--size", arguments->size,
                  "Of the region; default 64MiB, with several rounds 4MiB");
  app->add_flag("--quiet", arguments->quiet, "One line only");
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Feeds the real `alpheus append`, kills it with SIGKILL in mid-stream, "
      "recovers, and proves that every acknowledged line is there exactly once "
      "and that nothing was invented. Exit status 0 only if all holds.",
      "alpheus-demo");
  Arguments arguments;
  AddOptions(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (arguments.file.empty()) arguments.file = DefaultFile();
  if (arguments.directory.empty()) {
    arguments.directory = DefaultDirectory(arguments);
  }
  const absl::Status status = RunDemo(arguments);
  if (status.ok()) return 0;
  std::fflush(stdout);
  absl::FPrintF(stderr, "alpheus-demo: %s\n", std::string(status.message()));
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace alpheus::demo

int main(int argc, char** argv) { return alpheus::demo::Main(argc, argv); }
