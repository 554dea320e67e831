// SPDX-License-Identifier: Apache-2.0
// bench_local: measures the log on one machine beside its floor and its peers,
// by turns in one run, and writes the results as JSON (docs/results/README.md).
// bench/plots judges and draws them.
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/clock.h"
#include "bench/harness/machine.h"
#include "bench/harness/program.h"
#include "bench/harness/result.h"
#include "bench/local/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

absl::Status RunScenarios(const ProgramOptions& options,
                          const Settings& settings, Report* report) {
  for (const Scenario& scenario : kScenarios) {
    const std::string name(scenario.name);
    if (!IsWanted(options, name, report)) continue;
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

absl::Status Run(const ProgramOptions& options) {
  const Settings settings =
      SettingsOf(options, FullSettings, QuickSettings, TinySettings);
  ALPHEUS_ASSIGN_OR_RETURN(Report report,
                           BeginReport("local", settings, options));
  ALPHEUS_RETURN_IF_ERROR(RunScenarios(options, settings, &report));
  return WriteResult(options, ToJson(report));
}

}  // namespace
}  // namespace alpheus::bench

int main(int argc, char** argv) {
  namespace bench = alpheus::bench;
  bench::Parser parser("Speed of the log on this machine, beside its peers");
  bench::ProgramOptions options;
  parser.DeclarePreset("Less of all, within a minute",
                       bench::NamesOf(bench::kScenarios), options);
  parser.DeclareRounds("the region files", options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  absl::Status status = bench::RestartWithPmemForced(argv);
  if (status.ok()) status = bench::Run(options);
  return bench::ExitStatus("bench_local", status);
}
