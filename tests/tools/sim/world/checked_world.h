// SPDX-License-Identifier: Apache-2.0
// checked_world: what tests of checkers share: a world of three machines,
// freshly formatted, of which they say by hand what is not so.
#ifndef ALPHEUS_TESTS_TOOLS_SIM_WORLD_CHECKED_WORLD_H_
#define ALPHEUS_TESTS_TOOLS_SIM_WORLD_CHECKED_WORLD_H_

#include <gtest/gtest.h>

#include <string>

#include "log/base/clock.h"
#include "tools/sim/world/options.h"
#include "tools/sim/world/oracle.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class StillClock final : public Clock {
 public:
  int64_t NowNanos() const override { return 7; }
};

// The invariant; empty: none.
inline std::string ViolatedBy(const Oracle& oracle) {
  return oracle.violation() ? oracle.violation()->invariant : "";
}

// For a checker that needs nothing but somebody to tell.
class CheckerTest : public ::testing::Test {
 protected:
  std::string violated() const { return ViolatedBy(oracle_); }

  const StillClock clock_;
  Oracle oracle_{clock_};
};

class CheckedWorldTest : public ::testing::Test {
 protected:
  explicit CheckedWorldTest(int write_quorum = 2)
      : world_(Options(write_quorum)) {}

  static RunOptions Options(int write_quorum) {
    RunOptions options;
    options.nodes = 3;
    options.write_quorum = write_quorum;
    return options;
  }

  Checkers& checkers() { return world_.checkers(); }
  std::string violated() { return ViolatedBy(world_.oracle()); }

  World world_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TESTS_TOOLS_SIM_WORLD_CHECKED_WORLD_H_
