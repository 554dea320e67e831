// SPDX-License-Identifier: Apache-2.0
// alpheus-sim: simulates clusters in virtual time. See
// docs/verify/simulation.md; the exit status is that of `alpheus`
// (tools/cli/io/exit_status.h).
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "tools/cli/io/exit_status.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/sim/run/sim_arguments.h"
#include "tools/sim/run/sim_command.h"

namespace alpheus::sim {
namespace {

using ::alpheus::cli::ExitStatus;

ExitStatus Main(int argc, char** argv) {
  cli::GuardStandardStreams();
  cli::Parser parser(
      "Simulates clusters in virtual time, with crashes, power cuts, pauses "
      "and cut links, and checks that the log loses nothing. Each seed is a "
      "run of its own, and always the same run. Exit status 0 only if no seed "
      "violates anything; a failing seed is reported with the shortest "
      "schedule that still fails.",
      "alpheus-sim");
  SimArguments arguments;
  AddSimOptions(parser.app(), &arguments);
  if (const auto end = parser.Parse(argc, argv)) return *end;
  const absl::Status status = RunSim(arguments);
  if (!status.ok()) {
    std::fprintf(stderr, "alpheus-sim: %s [%s]\n",
                 std::string(status.message()).c_str(),
                 absl::StatusCodeToString(status.code()).c_str());
  }
  return cli::ExitStatusOf(status.code());
}

}  // namespace
}  // namespace alpheus::sim

int main(int argc, char** argv) {
  return static_cast<int>(alpheus::sim::Main(argc, argv));
}
