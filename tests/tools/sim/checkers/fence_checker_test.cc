// SPDX-License-Identifier: Apache-2.0
// Does the checker of fences see each byte that must not land? Machine 0 has
// promised epoch 5 to the application of machine 1.
#include "tools/sim/checkers/fence_checker.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>

#include "tests/tools/sim/world/checked_world.h"
#include "tests/tools/sim/world/medium.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

constexpr quorum::PrimaryId kFirst{NodeId(2), 11};
constexpr quorum::PrimaryId kSecond{NodeId(3), 22};

class FenceCheckerTest : public CheckedWorldTest {
 protected:
  FenceCheckerTest() {
    checkers().fence.Names(HostOf(1), kFirst);
    checkers().fence.Names(HostOf(2), kSecond);
    Promise({Epoch(5), kFirst});
  }

  int HostOf(int machine) {
    return world_.PrimaryHost(world_.machine(machine));
  }
  void Promise(const alpheus::quorum::Promise& promise) {
    Medium(world_.machine(0)).Promise(promise);
    checkers().epochs.Check(0);
    checkers().fence.Promised(0, promise);
  }
  // In machine 0's region, from the application of that machine.
  void Land(int machine, uint64_t offset, uint64_t connection = 1) {
    LandAt(machine, world_.machine(0).pmem->region().subspan(offset, 8),
           connection);
  }
  void LandInRing(int machine, uint64_t connection = 1) {
    Land(machine, world_.layout().ring_offset, connection);
  }
  void LandAt(int machine, std::span<const std::byte> bytes,
              uint64_t connection) {
    const int from = HostOf(machine);
    checkers().fence.OnLanding(
        {.host = 0,
         .from = {from, world_.network().incarnation(from),
                  fabric::ConnectionId(connection)},
         .bytes = bytes});
  }
};

TEST_F(FenceCheckerTest, BytesOfWhomTheRingIsPromisedToViolateNothing) {
  LandInRing(1);
  LandInRing(1, /*connection=*/2);
  Promise({Epoch(6), kSecond});
  LandInRing(2);
  Promise({Epoch(7), kFirst});
  LandInRing(1, /*connection=*/3);
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().landings_checked, 4u);
}

TEST_F(FenceCheckerTest, BytesOfAnotherProcessViolateInv6) {
  LandInRing(2);
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(FenceCheckerTest, BytesOfAProcessThatNobodyNamedViolateInv6) {
  LandInRing(0);
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(FenceCheckerTest, BytesBehindAPromiseToAnotherViolateInv6) {
  LandInRing(1);
  Promise({Epoch(6), kSecond});
  LandInRing(1);
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(FenceCheckerTest, BytesOfAnOlderSessionOfTheSameProcessViolateInv6) {
  LandInRing(1);
  Promise({Epoch(6), kFirst});
  LandInRing(1);
  EXPECT_EQ(violated(), "P-INV-6");
}

// The replica ends them next, before it looks at its ring.
TEST_F(FenceCheckerTest, BytesBetweenAPromiseAndItsReportViolateNothing) {
  LandInRing(1);
  Medium(world_.machine(0)).Promise({Epoch(6), kSecond});
  checkers().epochs.Check(0);
  LandInRing(1);
  EXPECT_EQ(violated(), "");
  checkers().fence.Promised(0, {Epoch(6), kSecond});
  LandInRing(1);
  EXPECT_EQ(violated(), "P-INV-6");
}

// An adapter that came back is another process's.
TEST_F(FenceCheckerTest, BytesOfAProcessBeforeViolateInv6) {
  world_.network().Restart(HostOf(1));
  LandInRing(1);
  EXPECT_EQ(violated(), "P-INV-6");
}

TEST_F(FenceCheckerTest, BytesBesideTheRingViolateInvS4) {
  for (const uint64_t offset : {uint64_t{0}, kWatermarkOffset, kTableOffset}) {
    ASSERT_LT(offset, world_.layout().ring_offset);
  }
  Land(1, world_.layout().ring_offset - 8);
  EXPECT_EQ(violated(), "P-INV-S4");
}

TEST_F(FenceCheckerTest, BytesElsewhereAreNobodysBusiness) {
  const std::array<std::byte, 8> receive_buffer = {};
  LandAt(2, receive_buffer, 1);
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(world_.counters().landings_checked, 0u);
}

}  // namespace
}  // namespace alpheus::sim
