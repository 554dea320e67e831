// SPDX-License-Identifier: Apache-2.0
// bench_local: measures the log on one machine beside its floor and its peers,
// by turns in one run, and writes what it measured as JSON
// (docs/performance.md). bench/plots judges and draws it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/local/clock.h"
#include "bench/local/machine.h"
#include "bench/local/result.h"
#include "bench/local/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
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

std::vector<std::string> ScenarioNames() {
  std::vector<std::string> names;
  for (const Scenario& scenario : kScenarios) names.emplace_back(scenario.name);
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

Settings SettingsFor(const Options& options) {
  Settings settings = options.quick  ? QuickSettings()
                      : options.tiny ? TinySettings()
                                     : FullSettings();
  settings.folder = options.folder;
  if (options.rounds != 0) settings.rounds = options.rounds;
  return settings;
}

bool IsWanted(const Options& options, const Scenario& scenario) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), scenario.name) !=
             options.only.end();
}

absl::Status RunScenarios(const Options& options, const Settings& settings,
                          Report* report) {
  for (const Scenario& scenario : kScenarios) {
    const std::string name(scenario.name);
    if (!IsWanted(options, scenario)) {
      report->skips.push_back(
          {.scenario = name, .what = "all of it", .why = "not asked for"});
      continue;
    }
    std::fprintf(stderr, "bench_local: %s ...", name.c_str());
    const std::vector<int>& cores = report->machine.cores;
    ALPHEUS_RETURN_IF_ERROR(scenario.all_cores ? PinTo(cores)
                                               : PinTo(CoreFor(cores, 0)));
    const int64_t start = NowNanos();
    ALPHEUS_RETURN_IF_ERROR(scenario.measure(settings, report));
    std::fprintf(stderr, " %.1f s\n",
                 static_cast<double>(NowNanos() - start) / 1e9);
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const Settings settings = SettingsFor(options);
  Report report;
  report.preset = settings.preset;
  report.commit = options.commit;
  report.folder = settings.folder;
  report.rounds = settings.rounds;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  ALPHEUS_RETURN_IF_ERROR(RunScenarios(options, settings, &report));
  return WriteFile(options.json_path, ToJson(report));
}

}  // namespace
}  // namespace alpheus::bench

int main(int argc, char** argv) {
  CLI::App app("Speed of the log on this machine, beside its peers");
  alpheus::bench::Options options;
  alpheus::bench::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = alpheus::bench::Run(options);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_local: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
