// SPDX-License-Identifier: Apache-2.0
// shrinker: searches the shortest schedule that still fails.
//
// Idea: delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
// failure-inducing input", 2002) over the faults of a plan: leave out ever
// smaller parts of the rest, and keep what still fails without them, until no
// single fault can be left out. Then the sizes, by halving. The caller runs
// each case: the same seed with fewer faults is another run, so any case may
// fail or not.
//
// Invariants:
//   1. The result was seen to fail, or is the input.
//   2. At most `tries_max` cases are run.
// Thread safety: pure functions.
// References: docs/verify/simulation.md.
#ifndef ALPHEUS_TOOLS_SIM_RUN_SHRINKER_H_
#define ALPHEUS_TOOLS_SIM_RUN_SHRINKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>

namespace alpheus::sim {

// Parts of a run that can be made smaller.
struct ShrinkCase {
  std::set<uint32_t> faults;  // remaining ones, by number
  int clients = 1;
  size_t payload_bytes_max = 1;
  bool breaks = false;  // connections break by lot
  bool yields = false;  // threads are switched by lot

  bool operator==(const ShrinkCase&) const = default;
};

struct ShrinkOptions {
  int tries_max = 500;
  // Lower bound on payloads.
  size_t payload_bytes_min = 1;
};

struct Shrunk {
  ShrinkCase shortest;
  int tries = 0;
};

// `failing` is known to fail.
Shrunk Shrink(const ShrinkCase& failing, const ShrinkOptions& options,
              const std::function<bool(const ShrinkCase&)>& fails);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_RUN_SHRINKER_H_
