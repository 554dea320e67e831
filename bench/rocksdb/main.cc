// SPDX-License-Identifier: Apache-2.0
// bench_rocksdb: measures RocksDB with its WAL in different places, by turns in
// one run, and writes the results as JSON (docs/results/README.md). bench/plots
// judges and draws them.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/harness/machine.h"
#include "bench/harness/program.h"
#include "bench/harness/result.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/rocksdb/crash.h"
#include "bench/rocksdb/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

struct Options : ProgramOptions {
  std::vector<uint64_t> sizes;
  std::vector<int> threads;
  std::vector<std::string> wals;
  std::string disk_folder = "/var/tmp";
};

void Declare(Parser& parser, Options& options) {
  parser.DeclarePreset("Less of all, in about a minute", NamesOf(kScenarios),
                       options);
  parser.DeclareRounds("databases and regions", options);
  parser.DeclareNumbers("--sizes", options.sizes,
                        "put: values of these bytes only", 1, 1024);
  parser.DeclareNumbers("--threads", options.threads,
                        "put: these numbers of threads only", 1, 64);
  parser.DeclareWords("--wals", options.wals, "These places for the WAL only",
                      WalNames(FullSettings()));
  parser.DeclareFolder("--disk", options.disk_folder,
                       "Folder for the default WAL on a disk");
}

Settings SettingsFor(const Options& options) {
  Settings settings =
      SettingsOf(options, FullSettings, QuickSettings, TinySettings);
  settings.disk_folder = options.disk_folder;
  if (options.rounds != 0) settings.recovery_rounds = options.rounds;
  if (!options.sizes.empty()) settings.value_bytes = options.sizes;
  settings.wals = options.wals;
  if (!options.threads.empty()) settings.threads = options.threads;
  return settings;
}

absl::Status Run(const Options& options) {
  const Settings settings = SettingsFor(options);
  ALPHEUS_ASSIGN_OR_RETURN(Report report,
                           BeginReport("rocksdb", settings, options));
  ALPHEUS_ASSIGN_OR_RETURN(Contest contest, MakeContest(settings, &report));
  for (const Scenario& scenario : kScenarios) {
    ALPHEUS_RETURN_IF_ERROR(RunScenario(
        options, std::string(scenario.name),
        [&] { return scenario.measure(settings, contest, &report); }, &report));
  }
  return WriteResult(options, ToJson(report));
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

}  // namespace
}  // namespace alpheus::bench::wal

int main(int argc, char** argv) {
  namespace wal = alpheus::bench::wal;
  if (argc == 5 && std::string_view(argv[1]) == "backup") {
    return alpheus::bench::ExitStatus("bench_rocksdb",
                                      wal::Serve(argv[2], argv[3], argv[4]));
  }
  if (argc > 1 && std::string_view(argv[1]) == wal::kFillMode) {
    return alpheus::bench::ExitStatus(
        "bench_rocksdb",
        wal::FillUntilKilled(std::span(argv, argc).subspan(1)));
  }
  alpheus::bench::Parser parser(
      "Speed of RocksDB on this machine, by the place of its WAL");
  wal::Options options;
  wal::Declare(parser, options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = wal::Run(options);
  return alpheus::bench::ExitStatus("bench_rocksdb", status);
}
