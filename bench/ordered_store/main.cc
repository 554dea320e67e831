// SPDX-License-Identifier: Apache-2.0
// bench_ordered_store: read-modify-writes of an ordered store in memory whose
// changes are in a log, by turns in one run, and writes what it measured as
// JSON (docs/performance.md). bench/plots judges and draws it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/local/clock.h"
#include "bench/local/core_use.h"
#include "bench/local/machine.h"
#include "bench/local/result.h"
#include "bench/ordered_store/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {
namespace {

struct Options {
  bool quick = false;
  bool tiny = false;
  std::vector<std::string> only;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  std::string json_path;
  std::string commit = "unknown";
};

const std::vector<std::string>& ScenarioNames() {
  static const std::vector<std::string> names = {
      std::string(kZipfian), std::string(kUniform), std::string(kCommit)};
  return names;
}

void Declare(CLI::App& app, Options& options) {
  auto* quick =
      app.add_flag("--quick", options.quick, "Less of all, within a minute");
  app.add_flag("--tiny", options.tiny,
               "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  app.add_option("--only", options.only, "These scenarios only")
      ->delimiter(',')
      ->check(CLI::IsMember(ScenarioNames()));
  app.add_option("--rounds", options.rounds, "Samples of each measurement")
      ->check(CLI::Range(1, 1000));
  app.add_option("--dir", options.folder,
                 "Folder for the region files, on tmpfs or DAX")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--json", options.json_path, "Where the result goes")
      ->required();
  app.add_option("--commit", options.commit, "What was built, for the result");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
}

absl::Status Measure(const Settings& settings, const std::string& scenario,
                     Report* report) {
  std::fprintf(stderr, "bench_ordered_store: %s ...", scenario.c_str());
  ALPHEUS_RETURN_IF_ERROR(PinTo(CoreFor(report->machine.cores, 0)));
  ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes before, ReadCoreTimes());
  const int64_t start = NowNanos();
  ALPHEUS_RETURN_IF_ERROR(scenario == kCommit
                              ? MeasureCommits(settings, report)
                              : MeasureRmw(settings, scenario, report));
  const double seconds = static_cast<double>(NowNanos() - start) / 1e9;
  ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes after, ReadCoreTimes());
  report->disturbances.push_back(
      {.scenario = scenario,
       .seconds = seconds,
       .share_of_others = ShareOfOthers(before, after)});
  std::fprintf(stderr, " %.1f s\n", seconds);
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  Settings settings = options.quick  ? QuickSettings()
                      : options.tiny ? TinySettings()
                                     : FullSettings();
  settings.folder = options.folder;
  if (options.rounds != 0) settings.rounds = options.rounds;
  Report report;
  report.benchmark = "ordered_store";
  report.preset = settings.preset;
  report.commit = options.commit;
  report.folder = settings.folder;
  report.rounds = settings.rounds;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  for (const std::string& scenario : ScenarioNames()) {
    if (options.only.empty() ||
        std::ranges::count(options.only, scenario) != 0) {
      ALPHEUS_RETURN_IF_ERROR(Measure(settings, scenario, &report));
    } else {
      report.skips.push_back(
          {.scenario = scenario, .what = "all of it", .why = "not asked for"});
    }
  }
  return WriteFile(options.json_path, ToJson(report));
}

}  // namespace
}  // namespace alpheus::bench::ordered_store

int main(int argc, char** argv) {
  CLI::App app("Changes of an ordered store in memory, by force policy");
  alpheus::bench::ordered_store::Options options;
  alpheus::bench::ordered_store::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = alpheus::bench::ordered_store::Run(options);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_ordered_store: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
