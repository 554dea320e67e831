// SPDX-License-Identifier: Apache-2.0
// bench_service: measures the service over gRPC beside its floor and its peers,
// by turns in one run, and writes the results as JSON (docs/results/README.md).
// bench/plots judges and draws them.
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "bench/harness/machine.h"
#include "bench/harness/program.h"
#include "bench/harness/result.h"
#include "bench/service/contestants/followers.h"
#include "bench/service/grpc/echo_server.h"
#include "bench/service/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {
namespace {

absl::Status Run(const ProgramOptions& options) {
  const Settings settings =
      SettingsOf(options, FullSettings, QuickSettings, TinySettings);
  ALPHEUS_ASSIGN_OR_RETURN(Report report,
                           BeginReport("service", settings, options));
  for (const Scenario& scenario : kScenarios) {
    ALPHEUS_RETURN_IF_ERROR(RunScenario(
        options, std::string(scenario.name),
        [&] { return scenario.measure(settings, &report); }, &report));
  }
  return WriteResult(options, ToJson(report));
}

}  // namespace
}  // namespace alpheus::bench::service

int main(int argc, char** argv) {
  namespace service = alpheus::bench::service;
  if (argc == 2 && std::string_view(argv[1]) == service::kEchoKind) {
    return alpheus::bench::ExitStatus("bench_service", service::ServeEcho());
  }
  if (argc > 1 && std::string_view(argv[1]) == service::kReaderKind) {
    return alpheus::bench::ExitStatus(
        "bench_service", service::ServeReader({argv + 1, argv + argc}));
  }
  alpheus::bench::Parser parser(
      "Speed of the service over gRPC on this machine, beside its floor");
  alpheus::bench::ProgramOptions options;
  parser.DeclarePreset("Less of all, within some minutes",
                       alpheus::bench::NamesOf(service::kScenarios), options);
  parser.DeclareRounds("the region files", options);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = service::Run(options);
  return alpheus::bench::ExitStatus("bench_service", status);
}
