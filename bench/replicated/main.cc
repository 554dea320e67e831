// SPDX-License-Identifier: Apache-2.0
// bench_replicated: measures the log with backups beside its floor and its
// peers, by turns in one run, and writes what it measured as JSON
// (docs/performance.md). bench/plots judges and draws it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
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
#include "bench/replicated/bare_fabric.h"
#include "bench/replicated/copy_server.h"
#include "bench/replicated/copy_sink.h"
#include "bench/replicated/floor.h"
#include "bench/replicated/rdma_hosts.h"
#include "bench/replicated/scenarios.h"
#include "bench/replicated/verbs_floor.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

struct Options {
  bool quick = false;
  bool tiny = false;
  std::vector<std::string> only;
  std::vector<uint64_t> sizes;
  std::vector<int> backups;
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
  auto* quick = app.add_flag("--quick", options.quick,
                             "Less of all, within some minutes");
  app.add_flag("--tiny", options.tiny,
               "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  app.add_option("--only", options.only, "These scenarios only")
      ->delimiter(',')
      ->check(CLI::IsMember(ScenarioNames()));
  app.add_option("--sizes", options.sizes,
                 "latency: records of these bytes only")
      ->delimiter(',')
      ->check(CLI::Range(1, 128 << 10));
  app.add_option("--backups", options.backups,
                 "latency: these numbers of backups only")
      ->delimiter(',')
      ->check(CLI::Range(1, 8));
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

Settings SettingsFor(const Options& options) {
  Settings settings = options.quick  ? QuickSettings()
                      : options.tiny ? TinySettings()
                                     : FullSettings();
  settings.folder = options.folder;
  if (options.rounds != 0) settings.rounds = options.rounds;
  if (!options.sizes.empty()) settings.sizes = options.sizes;
  if (!options.backups.empty()) settings.backups = options.backups;
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
  for (const Scenario& scenario : kScenarios) {
    const std::string name(scenario.name);
    if (!IsWanted(options, scenario)) {
      report->skips.push_back(
          {.scenario = name, .what = "all of it", .why = "not asked for"});
      continue;
    }
    std::fprintf(stderr, "bench_replicated: %s ...", name.c_str());
    const size_t measured = report->measurements.size();
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes before, ReadCoreTimes());
    ALPHEUS_RETURN_IF_ERROR(scenario.measure(settings, report));
    if (report->measurements.size() == measured) {
      std::fprintf(stderr, " skipped: %s\n", report->skips.back().why.c_str());
      continue;
    }
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
  report.benchmark = "replicated";
  report.preset = settings.preset;
  report.commit = options.commit;
  report.folder = settings.folder;
  report.rounds = settings.rounds;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  ALPHEUS_RETURN_IF_ERROR(RunScenarios(options, settings, &report));
  return WriteFile(options.json_path, ToJson(report));
}

// `bench_replicated backup KIND FOLDER RING_BYTES`, see backup_process.h.
absl::Status Serve(const std::string& kind, const std::string& folder,
                   const std::string& ring_bytes) {
  uint64_t bytes = 0;
  if (absl::SimpleAtoi(ring_bytes, &bytes)) {
    if (kind == kFloorName) return ServeFloor(folder, bytes);
    if (kind == kBareFabricName) return ServeBareFabric("", folder, bytes);
    if (kind == kBareVerbsKind) {
      return ServeBareFabric(RdmaHosts().at(1), folder, bytes);
    }
    if (kind == kVerbsFloorName) return ServeVerbsFloor(folder, bytes);
    if (kind == kCopyKind) return ServeCopy(folder);  // a file
    if (kind == kSinkKind) return ServeSink(folder, bytes);
    // The number is the node's.
    if (IsAlpheusKind(kind)) return ServeAlpheus(kind, folder, bytes);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("backup ", kind, " of ", ring_bytes, " bytes: unknown"));
}

int ExitStatus(const absl::Status& status) {
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_replicated: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace alpheus::bench::replicated

int main(int argc, char** argv) {
  namespace replicated = alpheus::bench::replicated;
  if (argc == 5 && std::string_view(argv[1]) == "backup") {
    return replicated::ExitStatus(replicated::Serve(argv[2], argv[3], argv[4]));
  }
  CLI::App app("Speed of the replicated log on this machine, beside its floor");
  replicated::Options options;
  replicated::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = replicated::Run(options);
  return replicated::ExitStatus(status);
}
