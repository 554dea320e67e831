// SPDX-License-Identifier: Apache-2.0
// bench_replicated: measures append + force to backups beside its floor, by
// turns in one run, and writes what it measured as JSON (docs/performance.md).
// bench/plots judges and draws it.
#include <CLI/CLI.hpp>
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
#include "bench/local/machine.h"
#include "bench/local/result.h"
#include "bench/replicated/alpheus.h"
#include "bench/replicated/bare_fabric.h"
#include "bench/replicated/floor.h"
#include "bench/replicated/scenario.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

struct Options {
  bool quick = false;
  bool tiny = false;
  std::vector<uint64_t> sizes;
  std::vector<int> backups;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;
  std::string json_path;
  std::string commit = "unknown";
};

void Declare(CLI::App& app, Options& options) {
  auto* quick =
      app.add_flag("--quick", options.quick, "Less of all, within a minute");
  app.add_flag("--tiny", options.tiny,
               "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  app.add_option("--sizes", options.sizes, "Records of these bytes only")
      ->delimiter(',')
      ->check(CLI::Range(1, 128 << 10));
  app.add_option("--backups", options.backups, "These numbers of backups only")
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

absl::Status Run(const Options& options) {
  const Settings settings = SettingsFor(options);
  Report report;
  report.benchmark = "replicated";
  report.preset = settings.preset;
  report.commit = options.commit;
  report.folder = settings.folder;
  report.rounds = settings.rounds;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  ALPHEUS_RETURN_IF_ERROR(MeasureLatency(settings, &report));
  return WriteFile(options.json_path, ToJson(report));
}

// `bench_replicated backup KIND FOLDER RING_BYTES`, see backup_process.h.
absl::Status Serve(const std::string& kind, const std::string& folder,
                   const std::string& ring_bytes) {
  uint64_t bytes = 0;
  if (absl::SimpleAtoi(ring_bytes, &bytes)) {
    if (kind == kFloorName) return ServeFloor(folder, bytes);
    if (kind == kBareFabricName) return ServeBareFabric(folder, bytes);
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
