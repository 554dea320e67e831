// SPDX-License-Identifier: Apache-2.0
// bench_remotelog: appends to a remote log by the 72 rows of the taxonomy, in
// simulated time and over a fabric, and writes what came out as JSON
// (docs/results/remotelog.md).
// bench/plots holds it against the taxonomy's findings and draws it.
#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/machine.h"
#include "bench/harness/program.h"
#include "bench/harness/result.h"
#include "bench/remotelog/costs.h"
#include "bench/remotelog/fabric_pair.h"
#include "bench/remotelog/fabric_transport.h"
#include "bench/remotelog/scenarios.h"
#include "bench/remotelog/simulated_transport.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::remotelog {
namespace {

struct Options : ProgramOptions {
  std::string over = "simulated";
  std::string memory;
};

void Declare(Parser& parser, Options& options) {
  parser.DeclarePreset("Less of all",
                       {"append", "clients", "sensitivity", "fabric"}, options);
  parser.DeclareWord(
      "--over", options.over,
      "Fabric of the rows beside simulated time: tcp, on this machine, or "
      "verbs, with the adapters in ALPHEUS_VERBS_ADDRESSES; scenarios are "
      "then append and fabric",
      {"simulated", "tcp", "verbs"});
  parser.DeclareWord(
      "--memory", options.memory,
      "Persistent memory for the server over a fabric, a device-DAX "
      "or a file; its content is lost",
      {});
}

// The report's object, and the cost model with it.
std::string ToText(const Report& report, const Options& options) {
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
  json["transport"] = options.over;
  return json.dump(1);
}

// A pair is opened only where it is asked for.
absl::Status MeasureOverFabric(const Options& options, const Settings& settings,
                               Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<FabricPair> pair,
                           options.over == "tcp"
                               ? FabricPair::OverTcp(options.memory)
                               : FabricPair::OverVerbs(options.memory));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<FabricTransport> transport,
                           FabricTransport::Make(pair->Ends(settings.warm_up)));
  return MeasureFabric(settings, *transport, report);
}

// Why a scenario is not run; empty: it is.
std::string WhyNot(const Options& options, const std::string& scenario) {
  const bool has_fabric = options.over != "simulated";
  if (scenario == "fabric" && !has_fabric) {
    return "--over names no fabric; `tools/dev vm-test remotelog` runs it over "
           "verbs in a guest";
  }
  const bool is_wanted =
      options.only.empty()
          ? !has_fabric || scenario == "append" || scenario == "fabric"
          : std::ranges::count(options.only, scenario) > 0;
  return is_wanted ? "" : "not asked for";
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
      {"fabric", [&] { return MeasureOverFabric(options, settings, report); }},
  };
  for (const Scenario& scenario : scenarios) {
    const std::string why = WhyNot(options, scenario.name);
    if (why.empty()) {
      ALPHEUS_RETURN_IF_ERROR(scenario.measure());
    } else {
      report->skips.push_back(
          {.scenario = scenario.name, .what = "all of it", .why = why});
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
  // In simulated time it is the same each time.
  report.rounds = options.over == "simulated" ? 1 : settings.rounds;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, DescribeMachine());
  ALPHEUS_RETURN_IF_ERROR(RunScenarios(options, settings, &report));
  return WriteResult(options, ToText(report, options));
}

}  // namespace
}  // namespace alpheus::bench::remotelog

int main(int argc, char** argv) {
  alpheus::bench::Parser parser("Appends to a remote log, by 72 methods");
  alpheus::bench::remotelog::Options options;
  alpheus::bench::remotelog::Declare(parser, options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  const absl::Status status = alpheus::bench::remotelog::Run(options);
  return alpheus::bench::ExitStatus("bench_remotelog", status);
}
