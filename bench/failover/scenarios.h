// SPDX-License-Identifier: Apache-2.0
// scenarios: the ways in which a primary is lost, a measurement each.
#ifndef ALPHEUS_BENCH_FAILOVER_SCENARIOS_H_
#define ALPHEUS_BENCH_FAILOVER_SCENARIOS_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "bench/failover/contestant.h"
#include "bench/harness/result.h"

namespace alpheus::bench::failover {

// Amount of work; presets are in settings.cc.
struct Settings {
  std::string preset;
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;   // of the log and the floor at `log_mib`
  uint64_t log_mib = 0;  // the size at which peers are measured, too
  uint64_t peer_rounds = 0;
  std::vector<uint64_t> other_mib;  // further sizes of the log
  uint64_t other_rounds = 0;        // of them
};

// Presets. The full one takes an hour or two, the quick one some ten minutes.
// The tiny one takes less than a minute; it is for tests, and its figures mean
// nothing.
Settings FullSettings();
Settings QuickSettings();
Settings TinySettings();

// Measures fail-overs after this fault, by size of the log: the log, the floor
// and peers by turns. Turns that are begun again are counted. Errors: those of
// a turn that was begun as often as TriesMax allows.
absl::Status MeasureFault(Fault fault, const std::string& scenario,
                          const Settings& settings, Report* report);

struct Scenario {
  std::string_view name;
  Fault fault;
};
inline constexpr std::array<Scenario, 4> kScenarios = {
    {{"kill", Fault::kKill},
     {"stop", Fault::kStop},
     {"cut", Fault::kCut},
     {"drain", Fault::kDrain}}};

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_SCENARIOS_H_
