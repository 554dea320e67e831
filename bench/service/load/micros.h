// SPDX-License-Identifier: Apache-2.0
// micros: the unit of the service's times.
//
// Thread safety: functions of values.
#ifndef ALPHEUS_BENCH_SERVICE_LOAD_MICROS_H_
#define ALPHEUS_BENCH_SERVICE_LOAD_MICROS_H_

#include <cstdint>

namespace alpheus::bench::service {

inline double MicrosBetween(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) / 1e3;
}

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_LOAD_MICROS_H_
