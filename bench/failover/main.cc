// SPDX-License-Identifier: Apache-2.0
// bench_failover: measures how long a log is without a primary once that is
// lost, beside its floor and its peers, by turns in one run, and writes the
// results as JSON (docs/results/README.md). bench/plots judges and draws them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/failover/alpheus/processes.h"
#include "bench/failover/floor_processes.h"
#include "bench/failover/scenarios.h"
#include "bench/harness/large_pages.h"
#include "bench/harness/machine.h"
#include "bench/harness/program.h"
#include "bench/harness/result.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {
namespace {

constexpr const char* kLarge = "large";
constexpr const char* kSmall = "small";

struct Options : ProgramOptions {
  std::vector<uint64_t> sizes;
  std::string pages = kLarge;
};

void Declare(Parser& parser, Options& options) {
  parser.DeclarePreset("Less of all, within some ten minutes",
                       NamesOf(kScenarios), options);
  parser.DeclareRounds("the region files", options);
  parser.DeclareNumbers("--sizes", options.sizes,
                        "Logs of these MiB only; peers are beside the first", 1,
                        64 << 10);
  parser.DeclareWord(
      "--pages", options.pages,
      "Pages of a tmpfs: large (2 MiB, as DAX has them) or small",
      {kLarge, kSmall});
}

// Returns the folder and its pages, for the report.
std::string PreparePages(const Options& options) {
  if (options.pages == kSmall) {
    return absl::StrCat(options.folder, ", small pages");
  }
  const absl::Status mounted = MountLargePages(options.folder);
  if (mounted.ok()) {
    return absl::StrCat(options.folder, ", a tmpfs with pages of 2 MiB");
  }
  return absl::StrCat(options.folder, ", not with large pages because ",
                      mounted.message());
}

Settings SettingsFor(const Options& options) {
  Settings settings =
      SettingsOf(options, FullSettings, QuickSettings, TinySettings);
  if (!options.sizes.empty()) {
    settings.log_mib = options.sizes.front();
    settings.other_mib.assign(options.sizes.begin() + 1, options.sizes.end());
  }
  return settings;
}

absl::Status Run(const Options& options) {
  const Settings settings = SettingsFor(options);
  ALPHEUS_ASSIGN_OR_RETURN(Report report,
                           BeginReport("failover", settings, options));
  report.folder = PreparePages(options);
  for (const Scenario& scenario : kScenarios) {
    const std::string name(scenario.name);
    ALPHEUS_RETURN_IF_ERROR(RunScenario(
        options, name,
        [&] { return MeasureFault(scenario.fault, name, settings, &report); },
        &report));
  }
  return WriteResult(options, ToJson(report));
}

// `bench_failover KIND FOLDER NODE LOG_MIB`, see processes.h.
absl::Status Serve(const std::string& kind, const std::string& folder,
                   const std::string& node, const std::string& log_mib) {
  uint64_t number = 0;
  uint64_t mib = 0;
  if (absl::SimpleAtoi(node, &number) && absl::SimpleAtoi(log_mib, &mib)) {
    if (kind == kNodeKind) return ServeNode(folder, number);
    if (kind == kProgramKind) return StandAtNode(folder, number, mib);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      kind, " of node ", node, " with ", log_mib, " MiB: unknown"));
}

// `bench_failover floor-node`, `bench_failover floor-primary PORT...`, see
// floor_processes.h.
absl::Status ServeFloor(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{kFloorNodeKind}) {
    return ServeFloorNode();
  }
  std::vector<uint16_t> ports;
  for (size_t i = 1; i < words.size(); ++i) {
    uint32_t port = 0;
    if (!absl::SimpleAtoi(words[i], &port) || port > UINT16_MAX) break;
    ports.push_back(static_cast<uint16_t>(port));
  }
  if (words.front() == kFloorPrimaryKind && !ports.empty() &&
      ports.size() + 1 == words.size()) {
    return ServeFloorPrimary(ports);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(words, " "), ": unknown"));
}

}  // namespace
}  // namespace alpheus::bench::failover

int main(int argc, char** argv) {
  namespace failover = alpheus::bench::failover;
  if (argc > 1 && std::string_view(argv[1]).starts_with("floor-")) {
    return alpheus::bench::ExitStatus(
        "bench_failover", failover::ServeFloor({argv + 1, argv + argc}));
  }
  if (argc == 5 && std::string_view(argv[1]).substr(0, 1) != "-") {
    return alpheus::bench::ExitStatus(
        "bench_failover", failover::Serve(argv[1], argv[2], argv[3], argv[4]));
  }
  alpheus::bench::Parser parser(
      "How long a log is without a primary, beside its floor");
  failover::Options options;
  failover::Declare(parser, options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = failover::Run(options);
  return alpheus::bench::ExitStatus("bench_failover", status);
}
