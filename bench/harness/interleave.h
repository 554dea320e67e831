// SPDX-License-Identifier: Apache-2.0
// interleave: lets contestants take turns, in an order that rotates from round
// to round, so that what else the machine does meets all alike.
#ifndef ALPHEUS_BENCH_HARNESS_INTERLEAVE_H_
#define ALPHEUS_BENCH_HARNESS_INTERLEAVE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

// Calls turn(contestant) once per round and contestant; the first error ends
// it.
template <class Turn>
absl::Status Interleave(uint64_t rounds, size_t contestants, Turn turn) {
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t k = 0; k < contestants; ++k) {
      ALPHEUS_RETURN_IF_ERROR(turn((round + k) % contestants));
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_INTERLEAVE_H_
