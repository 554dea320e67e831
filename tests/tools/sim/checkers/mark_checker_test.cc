// SPDX-License-Identifier: Apache-2.0
// Does the checker of heads and watermarks see each of them go back?
#include "tools/sim/checkers/mark_checker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "log/format/layout.h"
#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

constexpr Uuid kLog{1, 2};

class MarkCheckerTest : public CheckerTest {
 protected:
  void Write(int line, uint64_t epoch, uint64_t lsn) {
    const WatermarkFormat mark =
        EncodeWatermark(kLog, line, {Epoch(epoch), Lsn(lsn)});
    std::memcpy(WatermarkLine(medium_, line), &mark, sizeof(mark));
    checker_.Check(0, medium_);
  }

  std::vector<std::byte> medium_ = std::vector<std::byte>(kTableOffset);
  MarkChecker checker_{oracle_, kLog, 3};
};

TEST_F(MarkCheckerTest, WhatMovesForwardViolatesNothing) {
  checker_.OnSuperline(0, Epoch(1), Lsn(1));
  Write(0, 1, 4);
  Write(1, 1, 6);
  // The older line.
  Write(0, 1, 5);
  checker_.OnSuperline(0, Epoch(1), Lsn(3));
  EXPECT_EQ(checker_.checks(), 3u);
  checker_.Check(0, medium_);
  EXPECT_EQ(checker_.checks(), 3u);
  // Another epoch has a watermark and, with luck, a head of its own.
  checker_.OnSuperline(0, Epoch(2), Lsn(2));
  Write(0, 2, 2);
  EXPECT_EQ(violated(), "");
}

TEST_F(MarkCheckerTest, AWatermarkThatGoesBackViolatesItsRule) {
  checker_.OnSuperline(0, Epoch(1), Lsn(1));
  Write(0, 1, 4);
  Write(0, 1, 3);
  EXPECT_EQ(violated(), "P-A3.5");
}

TEST_F(MarkCheckerTest, AWatermarkThatIsLostViolatesItsRule) {
  checker_.OnSuperline(0, Epoch(1), Lsn(1));
  Write(0, 1, 4);
  std::memset(WatermarkLine(medium_, 0), 0, kLineBytes);
  checker_.Check(0, medium_);
  EXPECT_EQ(violated(), "P-A3.5");
}

TEST_F(MarkCheckerTest, AHeadThatGoesBackViolatesItsRule) {
  checker_.OnSuperline(0, Epoch(1), Lsn(5));
  checker_.OnSuperline(0, Epoch(1), Lsn(4));
  EXPECT_EQ(violated(), "P-A6");
}

TEST_F(MarkCheckerTest, TheDurableHeadIsOnAWriteQuorum) {
  checker_.OnSuperline(0, Epoch(1), Lsn(5));
  checker_.OnSuperline(1, Epoch(1), Lsn(9));
  checker_.OnSuperline(2, Epoch(1), Lsn(7));
  const std::vector<Lsn> heads = {checker_.head(0), checker_.head(1),
                                  checker_.head(2)};
  EXPECT_EQ(MarkChecker::DurableHead(heads, 1), Lsn(9));
  EXPECT_EQ(MarkChecker::DurableHead(heads, 2), Lsn(7));
  EXPECT_EQ(MarkChecker::DurableHead(heads, 3), Lsn(5));
  EXPECT_EQ(MarkChecker::DurableHead(heads, 4), Lsn(0));
}

}  // namespace
}  // namespace alpheus::sim
