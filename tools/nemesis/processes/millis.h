// SPDX-License-Identifier: Apache-2.0
// millis: units of time, and times as the reports of the demonstrations show
// them.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_MILLIS_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_MILLIS_H_

#include <cstdint>

namespace alpheus::demo {

inline constexpr int64_t kNanosPerSecond = 1'000'000'000;

constexpr double Millis(int64_t nanos) {
  return static_cast<double>(nanos) / 1e6;
}

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_MILLIS_H_
