// SPDX-License-Identifier: Apache-2.0
// membership_clients: a membership service by itself, in virtual time, and what
// tests ask of it.
#ifndef ALPHEUS_TESTS_TOOLS_SIM_ACTORS_MEMBERSHIP_CLIENTS_H_
#define ALPHEUS_TESTS_TOOLS_SIM_ACTORS_MEMBERSHIP_CLIENTS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "quorum/arithmetic/ballot.h"
#include "quorum/arithmetic/quorum.h"
#include "tests/tools/sim/world/checked_world.h"
#include "tools/sim/actors/membership_service.h"
#include "tools/sim/checkers/ballot_checker.h"

namespace alpheus::sim {

inline constexpr int64_t kSessionNanos = 2'000'000;
// A request and its answer arrive in this time, unless they are lost.
inline constexpr int64_t kAnswerNanos = 15'000;
// A watching session hears of a change in this time, unless that is delayed.
inline constexpr int64_t kEventNanos = 100'000;
inline constexpr quorum::QuorumSizes kThree{3, 2, 2};

// Processes of node 1, 2 and so on.
inline quorum::PrimaryId Process(uint64_t node) {
  return {NodeId(node), node << 48};
}
inline Epoch BallotOf(uint64_t counter, uint64_t node) {
  return quorum::PackBallot({counter, Process(node)});
}

class MembershipTest : public ::testing::Test {
 protected:
  explicit MembershipTest(const MembershipOptions& options = Options())
      : service_(network_, checker_, options) {}

  static MembershipOptions Options() {
    MembershipOptions options;
    options.machines = 3;
    options.session_ns = kSessionNanos;
    return options;
  }

  int64_t now() const { return network_.clock().NowNanos(); }
  std::string violated() const { return ViolatedBy(oracle_); }

  model::SimNetwork network_{model::SimOptions{}};
  Oracle oracle_{network_.clock()};
  BallotChecker checker_{oracle_};
  MembershipService service_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TESTS_TOOLS_SIM_ACTORS_MEMBERSHIP_CLIENTS_H_
