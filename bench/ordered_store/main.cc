// SPDX-License-Identifier: Apache-2.0
// bench_ordered_store: measures read-modify-writes of an ordered store in
// memory whose changes are in a log, by turns in one run, and writes the
// results as JSON (docs/results/README.md). bench/plots judges and draws them.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/machine.h"
#include "bench/harness/program.h"
#include "bench/harness/result.h"
#include "bench/ordered_store/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {
namespace {

const std::vector<std::string>& ScenarioNames() {
  static const std::vector<std::string> names = {
      std::string(kZipfian), std::string(kUniform), std::string(kCommit)};
  return names;
}

absl::Status Measure(const Settings& settings, const std::string& scenario,
                     Report* report) {
  ALPHEUS_RETURN_IF_ERROR(PinTo(CoreFor(report->machine.cores, 0)));
  return scenario == kCommit ? MeasureCommits(settings, report)
                             : MeasureRmw(settings, scenario, report);
}

absl::Status Run(const ProgramOptions& options) {
  const Settings settings =
      SettingsOf(options, FullSettings, QuickSettings, TinySettings);
  ALPHEUS_ASSIGN_OR_RETURN(Report report,
                           BeginReport("ordered_store", settings, options));
  for (const std::string& scenario : ScenarioNames()) {
    ALPHEUS_RETURN_IF_ERROR(RunScenario(
        options, scenario, [&] { return Measure(settings, scenario, &report); },
        &report));
  }
  return WriteResult(options, ToJson(report));
}

}  // namespace
}  // namespace alpheus::bench::ordered_store

int main(int argc, char** argv) {
  namespace bench = alpheus::bench;
  bench::Parser parser(
      "Changes of an ordered store in memory, by force policy");
  bench::ProgramOptions options;
  parser.DeclarePreset("Less of all, within a minute",
                       bench::ordered_store::ScenarioNames(), options);
  parser.DeclareRounds("the region files", options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  absl::Status status = bench::RestartWithPmemForced(argv);
  if (status.ok()) status = bench::ordered_store::Run(options);
  return bench::ExitStatus("bench_ordered_store", status);
}
