// SPDX-License-Identifier: Apache-2.0
// scenarios: the measurements of bench_remotelog.
//
//   append       each row, one client: the taxonomy's Figure 2
//   clients      the same with several clients on one server
//   sensitivity  each row, one client, with other costs: each constant alone,
//                times each of kVariations; all at once by lot, each less or
//                more by up to kVariation; the same, times or divided by up to
//                kWideFactor, which tells what no costs would change
//   fabric       each row that runs there, one client, over a fabric, in rounds
//                by turns
//
// Thread safety: none.
// References: docs/results/remotelog.md; result.h (the measurements).
#ifndef ALPHEUS_BENCH_REMOTELOG_SCENARIOS_H_
#define ALPHEUS_BENCH_REMOTELOG_SCENARIOS_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/harness/result.h"
#include "bench/remotelog/append_transport.h"

namespace alpheus::bench::remotelog {

inline constexpr double kVariation = 0.3;
inline constexpr std::array<double, 4> kVariations = {0.5, 1 - kVariation,
                                                      1 + kVariation, 2};
inline constexpr double kWideFactor = 4;

struct Settings {
  std::string_view preset;
  uint64_t appends;  // append, clients: of each client
  std::vector<uint64_t> clients;
  uint64_t varied_appends;  // sensitivity
  uint64_t draws;           // sensitivity: all constants at once
  uint64_t wide_draws;
  uint64_t rounds;          // fabric
  uint64_t fabric_appends;  // of each row in each round
  uint64_t warm_up;         // the same, before them
};
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();  // hardly anything

// Runs the append scenario. Errors: the transport's.
absl::Status MeasureAppend(const Settings& settings, AppendTransport& transport,
                           Report* report);
absl::Status MeasureClients(const Settings& settings,
                            AppendTransport& transport, Report* report);
// Runs the fabric scenario; rows that don't run there are skipped.
absl::Status MeasureFabric(const Settings& settings, AppendTransport& transport,
                           Report* report);
// Runs the sensitivity scenario, in simulated time only, where costs can be
// chosen.
absl::Status MeasureSensitivity(const Settings& settings, Report* report);

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_SCENARIOS_H_
