// SPDX-License-Identifier: Apache-2.0
// bench_replicated: measures the log with backups beside its floor and its
// peers, by turns in one run, and writes the results as JSON
// (docs/results/README.md). bench/plots judges and draws them.
#include <cstdint>
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
#include "bench/replicated/candidates/bare_fabric.h"
#include "bench/replicated/candidates/copy_server.h"
#include "bench/replicated/candidates/copy_sink.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/candidates/rdma_hosts.h"
#include "bench/replicated/candidates/verbs_floor.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

struct Options : ProgramOptions {
  std::vector<uint64_t> sizes;
  std::vector<int> backups;
};

void Declare(Parser& parser, Options& options) {
  parser.DeclarePreset("Less of all, within some minutes", NamesOf(kScenarios),
                       options);
  parser.DeclareRounds("the region files", options);
  parser.DeclareNumbers("--sizes", options.sizes,
                        "latency: records of these bytes only", 1, 128 << 10);
  parser.DeclareNumbers("--backups", options.backups,
                        "latency: these numbers of backups only", 1, 8);
}

Settings SettingsFor(const Options& options) {
  Settings settings =
      SettingsOf(options, FullSettings, QuickSettings, TinySettings);
  if (!options.sizes.empty()) settings.sizes = options.sizes;
  if (!options.backups.empty()) settings.backups = options.backups;
  return settings;
}

absl::Status Run(const Options& options) {
  const Settings settings = SettingsFor(options);
  ALPHEUS_ASSIGN_OR_RETURN(Report report,
                           BeginReport("replicated", settings, options));
  for (const Scenario& scenario : kScenarios) {
    ALPHEUS_RETURN_IF_ERROR(RunScenario(
        options, std::string(scenario.name),
        [&] { return scenario.measure(settings, &report); }, &report));
  }
  return WriteResult(options, ToJson(report));
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

}  // namespace
}  // namespace alpheus::bench::replicated

int main(int argc, char** argv) {
  namespace replicated = alpheus::bench::replicated;
  if (argc == 5 && std::string_view(argv[1]) == "backup") {
    return alpheus::bench::ExitStatus(
        "bench_replicated", replicated::Serve(argv[2], argv[3], argv[4]));
  }
  alpheus::bench::Parser parser(
      "Speed of the replicated log on this machine, beside its floor");
  replicated::Options options;
  replicated::Declare(parser, options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = replicated::Run(options);
  return alpheus::bench::ExitStatus("bench_replicated", status);
}
