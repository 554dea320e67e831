// SPDX-License-Identifier: Apache-2.0
// bench_remotelog: appends to a remote log by the 72 rows of the taxonomy, in
// simulated time, and writes what came out as JSON (docs/remotelog.md).
// bench/plots holds it against the taxonomy's findings and draws it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/local/machine.h"
#include "bench/local/result.h"
#include "bench/remotelog/costs.h"
#include "bench/remotelog/scenarios.h"
#include "bench/remotelog/simulated_transport.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::remotelog {
namespace {

struct Options {
  bool quick = false;
  bool tiny = false;
  std::vector<std::string> only;
  std::string json_path;
  std::string commit = "unknown";
};

void Declare(CLI::App& app, Options& options) {
  auto* quick = app.add_flag("--quick", options.quick, "Less of all");
  app.add_flag("--tiny", options.tiny,
               "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  app.add_option("--only", options.only, "These scenarios only")
      ->delimiter(',')
      ->check(CLI::IsMember({"append", "clients", "sensitivity"}));
  app.add_option("--json", options.json_path, "Where the result goes")
      ->required();
  app.add_option("--commit", options.commit, "What was built, for the result");
}

// The report's object, and the cost model with it.
std::string ToText(const Report& report) {
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(ToJson(report));
  Json constants = Json::array();
  for (const Constant& constant : Constants()) {
    constants.push_back({{"name", constant.name},
                         {"value", Costs().*constant.value},
                         {"unit", constant.unit},
                         {"origin", OriginName(constant.origin)},
                         {"what", constant.what},
                         {"source", constant.source}});
  }
  json["constants"] = constants;
  return json.dump(1);
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
}

absl::Status RunScenarios(const Options& options, const Settings& settings,
                          Report* report) {
  SimulatedTransport transport{Costs()};
  struct Scenario {
    const char* name;
    std::function<absl::Status()> measure;
  };
  const Scenario scenarios[] = {
      {"append", [&] { return MeasureAppend(settings, transport, report); }},
      {"clients", [&] { return MeasureClients(settings, transport, report); }},
      {"sensitivity", [&] { return MeasureSensitivity(settings, report); }},
  };
  for (const Scenario& scenario : scenarios) {
    if (options.only.empty() ||
        std::count(options.only.begin(), options.only.end(), scenario.name) >
            0) {
      ALPHEUS_RETURN_IF_ERROR(scenario.measure());
    } else {
      report->skips.push_back({.scenario = scenario.name,
                               .what = "all of it",
                               .why = "not asked for"});
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const Settings settings = options.quick  ? QuickSettings()
                            : options.tiny ? TinySettings()
                                           : FullSettings();
  Report report;
  report.benchmark = "remotelog";
  report.preset = settings.preset;
  report.commit = options.commit;
  report.rounds = 1;  // the same each time
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  ALPHEUS_RETURN_IF_ERROR(RunScenarios(options, settings, &report));
  report.skips.push_back({.scenario = "verbs",
                          .what = "the rows that an adapter here can run",
                          .why = "no transport over a fabric is built in"});
  return WriteFile(options.json_path, ToText(report));
}

}  // namespace
}  // namespace alpheus::bench::remotelog

int main(int argc, char** argv) {
  CLI::App app("Appends to a remote log, by 72 methods, in simulated time");
  alpheus::bench::remotelog::Options options;
  alpheus::bench::remotelog::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = alpheus::bench::remotelog::Run(options);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_remotelog: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
