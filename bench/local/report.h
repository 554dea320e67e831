// SPDX-License-Identifier: Apache-2.0
// report: the result of a run as tables for people and as JSON for programs.
#ifndef ALPHEUS_BENCH_LOCAL_REPORT_H_
#define ALPHEUS_BENCH_LOCAL_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/local/machine.h"
#include "bench/local/measure.h"

namespace alpheus::bench {

struct Report {
  Machine machine;
  MeasureOptions options;
  uint64_t ring_bytes = 0;
  std::string folder;
  std::vector<Comparison> comparisons;
};

// Tables, and a note if the machine is slower than the one of docs/
// performance.md.
std::string ToText(const Report& report);

// One object; all times in ns per append.
std::string ToJson(const Report& report);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_REPORT_H_
