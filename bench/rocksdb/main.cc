// SPDX-License-Identifier: Apache-2.0
// bench_rocksdb: measures RocksDB with its WAL in different places, by turns in
// one run, and writes what it measured as JSON (docs/performance.md).
// bench/plots judges and draws it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/local/clock.h"
#include "bench/local/core_use.h"
#include "bench/local/machine.h"
#include "bench/local/result.h"
#include "bench/replicated/alpheus.h"
#include "bench/rocksdb/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

struct Options {
  bool quick = false;
  bool tiny = false;
  std::vector<std::string> only;
  std::vector<uint64_t> sizes;
  std::vector<int> threads;
  std::string folder = "/dev/shm";
  std::string disk_folder = "/var/tmp";
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
      app.add_flag("--quick", options.quick, "Less of all, in about a minute");
  app.add_flag("--tiny", options.tiny,
               "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  app.add_option("--only", options.only, "These scenarios only")
      ->delimiter(',')
      ->check(CLI::IsMember(ScenarioNames()));
  app.add_option("--sizes", options.sizes, "put: values of these bytes only")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--threads", options.threads,
                 "put: these numbers of threads only")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  app.add_option("--rounds", options.rounds, "Samples of each measurement")
      ->check(CLI::Range(1, 1000));
  app.add_option("--dir", options.folder,
                 "Folder for databases and regions, on tmpfs or DAX")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--disk", options.disk_folder,
                 "Folder for the default WAL on a disk")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--json", options.json_path, "Where the result goes")
      ->required();
  app.add_option("--commit", options.commit, "What was built, for the result");
}

Settings SettingsFor(const Options& options) {
  Settings settings = options.quick  ? QuickSettings()
                      : options.tiny ? TinySettings()
                                     : FullSettings();
  settings.folder = options.folder;
  settings.disk_folder = options.disk_folder;
  if (options.rounds != 0) {
    settings.rounds = settings.recovery_rounds = options.rounds;
  }
  if (!options.sizes.empty()) settings.value_bytes = options.sizes;
  if (!options.threads.empty()) settings.threads = options.threads;
  return settings;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
}

bool IsWanted(const Options& options, const Scenario& scenario) {
  return options.only.empty() ||
         std::find(options.only.begin(), options.only.end(), scenario.name) !=
             options.only.end();
}

absl::Status RunScenarios(const Options& options, const Settings& settings,
                          Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(Contest contest, MakeContest(settings, report));
  for (const Scenario& scenario : kScenarios) {
    const std::string name(scenario.name);
    if (!IsWanted(options, scenario)) {
      report->skips.push_back(
          {.scenario = name, .what = "all of it", .why = "not asked for"});
      continue;
    }
    std::fprintf(stderr, "bench_rocksdb: %s ...", name.c_str());
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes before, ReadCoreTimes());
    ALPHEUS_RETURN_IF_ERROR(scenario.measure(settings, contest, report));
    ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes after, ReadCoreTimes());
    report->disturbances.push_back(
        {.scenario = name,
         .seconds = static_cast<double>(NowNanos() - start) / 1e9,
         .share_of_others = ShareOfOthers(before, after)});
    std::fprintf(stderr, " %.1f s\n", report->disturbances.back().seconds);
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const Settings settings = SettingsFor(options);
  Report report;
  report.benchmark = "rocksdb";
  report.preset = settings.preset;
  report.commit = options.commit;
  report.folder = settings.folder;
  report.rounds = settings.rounds;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  ALPHEUS_RETURN_IF_ERROR(RunScenarios(options, settings, &report));
  return WriteFile(options.json_path, ToJson(report));
}

// `bench_rocksdb backup KIND FOLDER NODE`, see backup_process.h.
absl::Status Serve(const std::string& kind, const std::string& folder,
                   const std::string& node) {
  uint64_t number = 0;
  if (absl::SimpleAtoi(node, &number) && replicated::IsAlpheusKind(kind)) {
    return replicated::ServeAlpheus(kind, folder, number);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("backup ", kind, " as node ", node, ": unknown"));
}

int ExitStatus(const absl::Status& status) {
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_rocksdb: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace alpheus::bench::wal

int main(int argc, char** argv) {
  namespace wal = alpheus::bench::wal;
  if (argc == 5 && std::string_view(argv[1]) == "backup") {
    return wal::ExitStatus(wal::Serve(argv[2], argv[3], argv[4]));
  }
  CLI::App app("Speed of RocksDB on this machine, by the place of its WAL");
  wal::Options options;
  wal::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = wal::Run(options);
  return wal::ExitStatus(status);
}
