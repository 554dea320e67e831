// SPDX-License-Identifier: Apache-2.0
// result: the measurements of a run, flat, and as JSON for bench/plots.
//
// Idea: the program measures and bench/plots judges and draws; between them
// lies a list of measurements that name scenario, candidate, parameters and
// metric, each with a raw sample per round.
//
// Invariants:
//   BRE1. Samples of one scenario, one record size (and one size of the log)
//         and equal index were taken in the same round, by turns, so that their
//         ratios mean something.
//   BRE2. A scenario that was not measured is in `skips` with its reason.
#ifndef ALPHEUS_BENCH_HARNESS_RESULT_H_
#define ALPHEUS_BENCH_HARNESS_RESULT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/machine.h"

namespace alpheus::bench {

using Parameters = std::map<std::string, uint64_t>;

struct Measurement {
  std::string scenario;
  std::string candidate;
  std::string metric;
  std::string unit;
  Parameters parameters;        // "bytes", "threads", ...
  std::vector<double> samples;  // one per round
  // Values for all samples together, such as "fences_per_append".
  std::map<std::string, double> details;
};

// Counts of each value from 0 on.
struct Distribution {
  std::string scenario;
  std::string candidate;
  std::string metric;
  Parameters parameters;
  std::vector<uint64_t> counts;  // the last one: that value or a higher one
};

// Share of the cores that others had while a scenario was measured
// (core_use.h).
struct Disturbance {
  std::string scenario;
  double seconds = 0;  // duration of the scenario
  double share_of_others = 0;
};

struct Skip {
  std::string scenario;
  std::string what;
  std::string why;
};

struct Report {
  std::string benchmark = "local";
  std::string preset;
  std::string commit;  // as given
  std::string folder;
  uint64_t rounds = 0;
  Machine machine;
  std::vector<Measurement> measurements;
  std::vector<Distribution> distributions;
  std::vector<Disturbance> disturbances;
  std::vector<Skip> skips;
};

// Returns one object; docs/results/README.md describes its shape.
std::string ToJson(const Report& report);

// Returns the measurements of such an object, as another process has written
// it. Errors: DataLoss: malformed.
// Errors: DataLoss: it is none.
absl::StatusOr<std::vector<Measurement>> MeasurementsOf(
    const std::string& json_text);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_RESULT_H_
