// SPDX-License-Identifier: Apache-2.0
// alpheus-nemesis: kills, pauses and restarts the processes of a cluster, and
// cuts the links between them, for a given time, and checks for losses. See
// nemesis_run.h; with --elections, election_run.h.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/cli/io/parser.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/processes/millis.h"
#include "tools/nemesis/processes/work_directory.h"
#include "tools/nemesis/rounds/election_run.h"
#include "tools/nemesis/rounds/nemesis_run.h"

namespace alpheus::demo {
namespace {

constexpr double kNanosPerMinute = 60e9;
constexpr int64_t kPrintNanos = 10'000'000'000;
// Records of many lengths, short ones most.
constexpr size_t kFeedLines = 64;
constexpr size_t kFeedLineBytesMax = 600;
// Values of --elections.
constexpr char kTwoAtOnce[] = "two-at-once";
constexpr char kMixed[] = "mixed";
constexpr char kStopped[] = "stopped";

struct Arguments {
  double minutes = 0;
  uint64_t rounds = 0;
  int nodes = 3;
  std::vector<std::string> rdma_hosts;
  std::string device;
  std::string elections;  // empty: a primary is opened by hand
  int zookeeper = 0;
  std::optional<uint64_t> seed;
  std::string directory;
  bool verbose = false;
};

std::string MakeFeedText() {
  std::string text;
  for (size_t line = 0; line < kFeedLines; ++line) {
    const size_t bytes =
        line * line * kFeedLineBytesMax / (kFeedLines * kFeedLines);
    text.append(bytes, static_cast<char>('a' + line % 26));
    text.push_back('\n');
  }
  return text;
}

// Tells every round, or now and then how far it is.
class ReportPrinter {
 public:
  explicit ReportPrinter(bool verbose) : verbose_(verbose) {}

  void Print(const ClusterRoundReport& report) {
    Print(report.plan.ToString(), report.acknowledged_count,
          report.recovery_nanos);
  }
  void Print(const ElectionReport& report) {
    Print(report.plan.ToString(), report.acknowledged_count,
          report.fail_over_nanos);
  }

 private:
  void Print(const std::string& plan, uint64_t acknowledged,
             int64_t open_nanos) {
    ++rounds_;
    acknowledged_ += acknowledged;
    if (verbose_) {
      absl::PrintF("round %d: %s: %d acknowledged, opened in %.1f ms\n",
                   rounds_, plan, acknowledged, Millis(open_nanos));
    }
    const int64_t now = Clock::Real().NowNanos();
    if (now >= next_nanos_) {
      absl::PrintF("%d rounds, %d records acknowledged, all there\n", rounds_,
                   acknowledged_);
      next_nanos_ = now + kPrintNanos;
    }
    std::fflush(stdout);
  }

  const bool verbose_;
  uint64_t rounds_ = 0;
  uint64_t acknowledged_ = 0;
  int64_t next_nanos_ = Clock::Real().NowNanos() + kPrintNanos;
};

absl::StatusOr<NemesisOptions> OptionsOf(const Arguments& arguments) {
  if (!arguments.elections.empty() && arguments.nodes < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("--elections with ", arguments.nodes,
                     " nodes: none may be missing then; take 3 or more"));
  }
  NemesisOptions options;
  ALPHEUS_ASSIGN_OR_RETURN(const std::string own, OwnDirectory());
  options.alpheus = absl::StrCat(own, "/alpheus");
  options.alpheusd = absl::StrCat(own, "/alpheusd");
  options.feed_text = MakeFeedText();
  options.rdma_hosts = arguments.rdma_hosts;
  options.device = arguments.device;
  options.node_count = arguments.rdma_hosts.empty()
                           ? arguments.nodes
                           : static_cast<int>(arguments.rdma_hosts.size());
  options.seed =
      arguments.seed ? *arguments.seed : EntropyRandom().Next() % 1'000'000'000;
  options.rounds_max = arguments.rounds;
  options.nanos_max = static_cast<int64_t>(arguments.minutes * kNanosPerMinute);
  if (arguments.minutes == 0 && arguments.rounds == 0) {
    options.nanos_max = static_cast<int64_t>(kNanosPerMinute);
  }
  // One round is that long.
  if (arguments.elections == kStopped) {
    options.rounds_max = std::max<uint64_t>(arguments.rounds, 1);
    options.nanos_max = 0;
  }
  return options;
}

// Errors: as RunNemesis; *rounds is how many were good.
absl::Status RunOpened(const NemesisOptions& options, ReportPrinter* printer,
                       uint64_t* rounds) {
  NemesisTotals totals;
  const absl::Status status = RunNemesis(
      options,
      [&](const ClusterRoundReport& report) { printer->Print(report); },
      &totals);
  *rounds = totals.Sum().rounds;
  absl::PrintF("\n%s", totals.ToString());
  if (status.ok()) {
    absl::PrintF(
        "lost 0, duplicated 0, invented 0, out of order 0; rounds: %s; seed "
        "%d\n",
        totals.Counts(), options.seed);
  }
  return status;
}

// Errors: as RunElections; *rounds is how many were good.
absl::Status RunElected(const NemesisOptions& options,
                        const Arguments& arguments, ReportPrinter* printer,
                        uint64_t* rounds) {
  ElectionRunOptions elections;
  elections.run = options;
  elections.kind = arguments.elections == kTwoAtOnce ? ElectionKind::kCollisions
                   : arguments.elections == kStopped ? ElectionKind::kStopped
                                                     : ElectionKind::kMixed;
  elections.stop_nanos = static_cast<int64_t>(
      (arguments.minutes == 0 ? 1 : arguments.minutes) * kNanosPerMinute);
  elections.zookeeper_count = arguments.zookeeper;
  ElectionTotals totals;
  const absl::Status status = RunElections(
      elections, [&](const ElectionReport& report) { printer->Print(report); },
      &totals);
  *rounds = totals.rounds;
  absl::PrintF("\n%s\n", totals.ToString());
  if (status.ok()) {
    absl::PrintF(
        "one primary in each epoch; lost 0, duplicated 0, invented 0, out of "
        "order 0 in %d rounds of elections; seed %d\n",
        totals.rounds, options.seed);
  }
  return status;
}

std::string Repeat(const NemesisOptions& options, const Arguments& arguments,
                   uint64_t rounds) {
  std::string command =
      absl::StrCat("tools/dev nemesis --nodes ", options.node_count, " --seed ",
                   options.seed);
  if (arguments.elections == kStopped && arguments.minutes != 0) {
    absl::StrAppend(&command, " --minutes ", arguments.minutes);
  } else {
    absl::StrAppend(&command, " --rounds ", rounds);
  }
  if (arguments.elections.empty()) return command;
  absl::StrAppend(&command, " --elections ", arguments.elections);
  if (arguments.zookeeper > 0) {
    absl::StrAppend(&command, " --zookeeper ", arguments.zookeeper);
  }
  return command;
}

absl::Status Run(const Arguments& arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(
      WorkDirectory directory,
      WorkDirectory::Create(arguments.directory.empty()
                                ? DefaultParent(/*in_memory=*/true)
                                : arguments.directory));
  ALPHEUS_ASSIGN_OR_RETURN(NemesisOptions options, OptionsOf(arguments));
  options.directory = directory.path();
  absl::PrintF("seed %d, %d nodes in %s\n", options.seed, options.node_count,
               options.directory);
  std::fflush(stdout);
  ReportPrinter printer(arguments.verbose);
  uint64_t rounds = 0;
  const absl::Status status =
      arguments.elections.empty()
          ? RunOpened(options, &printer, &rounds)
          : RunElected(options, arguments, &printer, &rounds);
  if (status.ok() || absl::IsFailedPrecondition(status)) return status;
  return absl::Status(
      status.code(), absl::StrCat(status.message(), "\nThe cluster is kept in ",
                                  directory.Keep(), ". To repeat: ",
                                  Repeat(options, arguments, rounds + 1)));
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  const cli::Option minutes =
      cli::AddOption(app, "--minutes", &arguments->minutes,
                     "How long to run; default one minute. With --elections "
                     "stopped, how long ZooKeeper stands still");
  minutes.Positive();
  cli::AddOption(app, "--rounds", &arguments->rounds, "How many rounds")
      .Decimal()
      .Excludes(minutes);
  cli::AddOption(app, "--nodes", &arguments->nodes,
                 "Nodes of the cluster; at least 3 with --elections")
      .Range(2, 9)
      .ShowDefault();
  cli::AddOption(app, "--rdma-hosts", &arguments->rdma_hosts,
                 "Addresses of this machine's RDMA adapters, separated by "
                 "commas: one node on each, and no links to cut")
      .SplitAt(',')
      .Count(2, 9)
      .Excludes(cli::FindOption(app, "--nodes"));
  cli::AddOption(app, "--device", &arguments->device,
                 "Device-DAX for the last node's replica of the first log")
      .ExistingFile();
  const cli::Option elections = cli::AddOption(
      app, "--elections", &arguments->elections,
      "A program stands for primary at each node, and is replaced by election: "
      "with two candidates at once, after mixed faults of programs, nodes, "
      "links and ZooKeeper, or once while ZooKeeper stands still under load");
  elections.OneOf({kTwoAtOnce, kMixed, kStopped})
      .Excludes(cli::FindOption(app, "--rdma-hosts"))
      .Excludes(cli::FindOption(app, "--device"));
  cli::AddOption(app, "--zookeeper", &arguments->zookeeper,
                 "Servers of ZooKeeper that keep the membership; 0: static")
      .Range(0, 5)
      .ShowDefault()
      .Needs(elections);
  cli::AddOption(app, "--seed", &arguments->seed,
                 "Repeats the random draws of a run (not its scheduling)")
      .Decimal();
  cli::AddOption(app, "--dir", &arguments->directory,
                 "Where to make the cluster; default /dev/shm");
  cli::AddFlag(app, "--verbose", &arguments->verbose,
               "Print a line for each round");
}

int Main(int argc, char** argv) {
  cli::Parser parser(
      "Runs a cluster on this machine, kills and pauses its processes, cuts "
      "their links and loses their media at random while a log is written. "
      "Exit status 0 only if nothing that was acknowledged is lost, moved or "
      "changed, and nothing was invented.",
      "alpheus-nemesis");
  Arguments arguments;
  AddOptions(parser.app(), &arguments);
  if (const auto end = parser.Parse(argc, argv)) {
    return static_cast<int>(*end);
  }
  const absl::Status status = Run(arguments);
  if (status.ok()) return 0;
  std::fflush(stdout);
  absl::FPrintF(stderr, "alpheus-nemesis: VIOLATED: %s\n",
                std::string(status.message()));
  return 1;
}

}  // namespace
}  // namespace alpheus::demo

int main(int argc, char** argv) { return alpheus::demo::Main(argc, argv); }
