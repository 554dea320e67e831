// SPDX-License-Identifier: Apache-2.0
// sim_arguments: the arguments of `alpheus-sim`, and their consequences.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_RUN_SIM_ARGUMENTS_H_
#define ALPHEUS_TOOLS_SIM_RUN_SIM_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sim/world/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace alpheus::sim {

struct SimArguments {
  std::optional<uint64_t> seed;
  std::string seeds;
  double minutes = 0;
  std::optional<int> nodes;
  std::optional<int> write_quorum;
  std::optional<int> clients;
  std::optional<size_t> payload;
  std::string workload;
  std::vector<std::string> faults;
  std::string without;
  bool beyond_budget = false;
  bool no_breaks = false;
  bool no_yields = false;
  std::string canary = "none";
  std::string membership;
  std::vector<std::string> background_actors;
  std::optional<std::string> platform;
  int jobs = 0;  // 0: one per core
  bool json = false;
  bool trace = false;
  bool shrink = true;
  bool keep_going = false;
  std::string commit;
};

// Seeds to run, in order.
struct SeedRange {
  uint64_t first = 1;
  uint64_t last = 1;
};

void AddSimOptions(CLI::App* command, SimArguments* arguments);

// Returns the seeds. Without --seed and --seeds: 1 to 100, or all from `drawn`
// on for --minutes.
// Errors: InvalidArgument.
absl::StatusOr<SeedRange> SeedsOf(const SimArguments& arguments,
                                  uint64_t drawn);
// Returns the fixed parameters. Errors: InvalidArgument.
absl::StatusOr<Fixed> FixedOf(const SimArguments& arguments);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_SIM_ARGUMENTS_H_
