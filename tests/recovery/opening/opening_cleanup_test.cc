// SPDX-License-Identifier: Apache-2.0
// Openings that clean what they are told to: the way out of a full epoch table.
#include "recovery/opening/opening_cleanup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Primary = OpeningWorld::Primary;

// Three members, and the records a, b, c of one epoch on all of them.
class OpeningCleanupTest : public ::testing::TestWithParam<bool> {
 protected:
  OpeningCleanupTest() : world_({.real_server = GetParam()}) {
    const auto primary = world_.Open(0);
    for (const char* text : {"a", "b", "c"}) {
      world_.Append(*primary, text, {1, 2, 3});
    }
  }
  recovery::EpochOpeningOptions Through(int host, uint64_t lsn) {
    recovery::EpochOpeningOptions options = world_.OpeningOptions(host);
    options.cleanup_through = Lsn(lsn);
    return options;
  }

  OpeningWorld world_;
};
INSTANTIATE_TEST_SUITE_P(Scripted, OpeningCleanupTest,
                         ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Real, OpeningCleanupTest, ::testing::Values(true));

TEST_P(OpeningCleanupTest, HeadIsBehindTheLastThatIsCleaned) {
  const auto cleaned = world_.Open(0, Through(0, 2));
  ASSERT_TRUE(cleaned->status().ok()) << cleaned->status();
  EXPECT_EQ(cleaned->opened->head.lsn, Lsn(3));
  EXPECT_EQ(cleaned->opened->end.lsn, Lsn(4));
  for (const int node : {1, 2, 3}) {
    EXPECT_THAT(world_.Payloads(node), ElementsAre("c"));
    if (GetParam()) continue;  // a real server's can't be looked into
    const Superline& superline = world_.replica(node).superline();
    EXPECT_EQ(superline.head_lsn, Lsn(3));
    EXPECT_EQ(superline.head_offset, world_.positions[2].offset);
    EXPECT_EQ(superline.head_chain, world_.positions[2].chain);
  }
  // A head never goes back (P-L9), and the chain holds behind it (CH3).
  const auto next = world_.Open(0, Through(0, 1));
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->head.lsn, Lsn(3));
}

// By a process without a replica, of all: LSNs go on.
TEST_P(OpeningCleanupTest, AllMayBeCleanedByAnybody) {
  const int outsider = world_.outsider();
  const auto cleaned = world_.Open(outsider, Through(outsider, 3));
  ASSERT_TRUE(cleaned->status().ok()) << cleaned->status();
  for (const int node : {1, 2, 3}) {
    EXPECT_THAT(world_.Payloads(node), IsEmpty());
    if (GetParam()) continue;
    EXPECT_EQ(world_.replica(node).table().entries().size(), 1u);  // ET3
  }
  EXPECT_EQ(cleaned->opened->end.lsn, Lsn(4));
}

TEST_P(OpeningCleanupTest, WhatWasNeverAssignedIsRefused) {
  const auto refused = world_.Open(0, Through(0, 4));
  EXPECT_TRUE(absl::IsOutOfRange(refused->status())) << refused->status();
  EXPECT_THAT(std::string(refused->status().message()),
              AllOf(HasSubstr("LSN 4"), HasSubstr("the last one is 3")));
  const auto next = world_.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_THAT(world_.Payloads(2), ElementsAre("a", "b", "c"));
}

// One that was away has the old head, and comes back to the new one.
TEST_P(OpeningCleanupTest, MemberThatWasOutOfSyncGetsTheHead) {
  world_.Crash(3);
  ASSERT_TRUE(world_.Open(0, Through(0, 2))->status().ok());
  world_.Restart(3);
  const auto next = world_.Open(0);
  ASSERT_TRUE(next->status().ok()) << next->status();
  EXPECT_EQ(next->opened->head.lsn, Lsn(3));
  EXPECT_THAT(world_.Payloads(3), ElementsAre("c"));
}

// Wherever it is cut off the log has one of the two heads, and all behind it.
TEST(CleaningOpeningTest, NextOpeningSucceedsWhereverOneIsCutOff) {
  for (const int victim : {0, 2, 3}) {  // 0: only the primary's process
    for (int k = 1;; ++k) {
      SCOPED_TRACE(::testing::Message()
                   << "victim " << victim << " event " << k);
      OpeningWorld world({.seed = 5, .real_server = true});
      auto primary = world.Open(0);
      for (const char* text : {"a", "b", "c"}) {
        world.Append(*primary, text, {1, 2, 3});
      }
      recovery::EpochOpeningOptions options = world.OpeningOptions(0);
      options.cleanup_through = Lsn(2);
      primary = world.Begin(0, options);
      bool over = false;
      for (int i = 0; i < k && !over; ++i) over = !world.Step({primary.get()});
      if (victim != 0) {
        world.Crash(victim);
        world.Drive({primary.get()});
      }
      const bool was_cleaned = primary->opened.has_value();
      primary.reset();
      if (victim != 0) world.Restart(victim);
      world.Crash(1);
      world.Restart(1);
      const auto next = world.Open(0);
      ASSERT_TRUE(next->status().ok()) << next->status();
      const std::vector<std::string> log = world.Payloads(1);
      if (was_cleaned || log.size() != 3) {
        EXPECT_THAT(log, ElementsAre("c"));
      } else {
        EXPECT_THAT(log, ElementsAre("a", "b", "c"));
      }
      for (const recovery::OpenedBackup& backup : next->opened->backups) {
        EXPECT_EQ(world.Payloads(static_cast<int>(backup.node.value)), log);
      }
      if (over) break;
    }
  }
}

// P-A2: the table has room for so many openings with live records; then the
// opening says how to go on, and goes on so.
TEST(CleaningOpeningTest, FullTableIsRefusedWithAWayOut) {
  OpeningWorld world({.ring_capacity = 65536});
  uint64_t openings = 0;
  absl::Status refused;
  for (; refused.ok() && openings < 2000; ++openings) {
    const auto primary = world.Open(0);
    refused = primary->status();
    if (refused.ok()) world.Append(*primary, "x", {1, 2, 3});
  }
  ASSERT_TRUE(absl::IsResourceExhausted(refused)) << openings << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("alpheus cleanup --cluster FILE --log NAME --through"),
            HasSubstr("starts at LSN 2")));
  recovery::EpochOpeningOptions options = world.OpeningOptions(0);
  options.cleanup_through = Lsn(1);
  const auto cleaned = world.Open(0, options);
  ASSERT_TRUE(cleaned->status().ok()) << cleaned->status();
  EXPECT_EQ(world.Payloads(2).size(), openings - 2);
}

}  // namespace
}  // namespace alpheus::testing
