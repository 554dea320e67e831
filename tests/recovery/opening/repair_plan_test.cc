// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/repair_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/oracles/state_report_world.h"

namespace alpheus::recovery {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kTwoOfThree;
using testing::ReplyOf;
using testing::ReportsOf;
using testing::Shortened;
using testing::naive::Reply;

RepairPlan PlannedFrom(const quorum::QuorumSizes& sizes,
                       const std::vector<StateReport>& reports) {
  const auto decision = Choose(sizes, reports);
  EXPECT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->outcome, Outcome::kChosen) << decision->reason;
  return PlanRepair(sizes, *decision, reports,
                    {Uuid{7, 7}, Epoch(9), 99, decision->configuration});
}

RepairPlan Planned(const quorum::QuorumSizes& sizes,
                   const std::vector<Reply>& replies) {
  return PlannedFrom(sizes, ReportsOf(replies, sizes));
}

TEST(RepairPlanTest, LaggingReplicaIsExtendedWithoutAMark) {
  const RepairPlan plan = Planned(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "hhhh"),
                                                ReplyOf(2, 1, {{1, 1}}, "hath"),
                                                ReplyOf(3, 1, {{1, 1}}, "hc")});
  ASSERT_EQ(plan.repairs.size(), 3u);
  EXPECT_THAT(plan.repairs[0].copies, IsEmpty());
  EXPECT_THAT(plan.repairs[1].copies, ElementsAre(CopyRun{Lsn(2), Lsn(4), 1}));
  for (const ReplicaRepair& repair : plan.repairs) {
    EXPECT_FALSE(repair.destructive);
    EXPECT_FALSE(repair.set_repairing);
    EXPECT_FALSE(repair.after_write_quorum);
  }
}

// P-H12, RPL1: replica 2 has LSN 2 of an epoch that lost it; extensions come
// first and make W, so that it waits for them.
TEST(RepairPlanTest, OverwritingAValidRecordIsMarkedFirst) {
  const Reply highest = ReplyOf(1, 2, {{1, 1}, {2, 2}}, "hh");
  const Reply diverged = ReplyOf(2, 1, {{1, 1}}, "hh");
  const Reply lagging = ReplyOf(3, 1, {{1, 1}}, "h");
  const RepairPlan plan = Planned(kTwoOfThree, {highest, diverged, lagging});
  ASSERT_EQ(plan.repairs.size(), 3u);
  EXPECT_EQ(plan.repairs[1].report, 2u);
  EXPECT_FALSE(plan.repairs[1].set_repairing);
  EXPECT_EQ(plan.repairs[2].report, 1u);
  EXPECT_TRUE(plan.repairs[2].set_repairing);
  EXPECT_TRUE(plan.repairs[2].after_write_quorum);
  // Without the third one it is needed for W.
  const RepairPlan needed = Planned(kTwoOfThree, {highest, diverged});
  EXPECT_TRUE(needed.repairs[1].set_repairing);
  EXPECT_FALSE(needed.repairs[1].after_write_quorum);
}

// The same; neither replica names its records (STR4 of state_report.h).
TEST(RepairPlanTest, OverwritingARecordThatIsNotNamedIsMarkedFirst) {
  std::vector<StateReport> reports =
      ReportsOf({ReplyOf(1, 2, {{1, 1}, {2, 2}}, "hh"),
                 ReplyOf(2, 1, {{1, 1}}, "hh"), ReplyOf(3, 1, {{1, 1}}, "h")},
                kTwoOfThree);
  reports[0] = Shortened(reports[0], 2);
  reports[1] = Shortened(reports[1], 2);
  const RepairPlan plan = PlannedFrom(kTwoOfThree, reports);
  ASSERT_EQ(plan.repairs.size(), 3u);
  EXPECT_EQ(plan.repairs[1].report, 2u);
  EXPECT_FALSE(plan.repairs[1].set_repairing);
  EXPECT_EQ(plan.repairs[2].report, 1u);
  EXPECT_THAT(plan.repairs[2].copies, ElementsAre(CopyRun{Lsn(2), Lsn(3), 1}));
  EXPECT_TRUE(plan.repairs[2].set_repairing);
}

TEST(RepairPlanTest, RecordsBeyondTheEndNeedNoMark) {
  const RepairPlan plan = Planned(
      kTwoOfThree,
      {ReplyOf(1, 2, {{1, 1}, {2, 2}}, "h"), ReplyOf(2, 1, {{1, 1}}, "hhh")});
  EXPECT_THAT(plan.repairs[1].copies, IsEmpty());
  EXPECT_FALSE(plan.repairs[1].set_repairing);
}

// The log went on for more than a lap while replica 2 was away: LSNs 9 and 10
// go where it has 1 and 2.
TEST(RepairPlanTest, OverwritingAnEarlierLapIsMarkedFirst) {
  Reply ahead = ReplyOf(1, 1, {{1, 1}}, "hhhhhhhhhh");
  ahead.head = 3;
  const RepairPlan plan =
      Planned(kTwoOfThree, {ahead, ReplyOf(2, 1, {{1, 1}}, "hhhhhhhh")});
  EXPECT_THAT(plan.repairs[1].copies, ElementsAre(CopyRun{Lsn(9), Lsn(11), 1}));
  EXPECT_TRUE(plan.repairs[1].set_repairing);
  ahead.cells.resize(8);
  EXPECT_FALSE(Planned(kTwoOfThree, {ahead, ReplyOf(2, 1, {{1, 1}}, "hhh")})
                   .repairs[1]
                   .set_repairing);
}

// A repair that was begun is begun again, and its replica stays marked. Nothing
// is known of a suspect replica. A blank one resyncs.
TEST(RepairPlanTest, ReplicasThatKnowNothingGetEverything) {
  Reply repairing = ReplyOf(2, 1, {{1, 1}}, "");
  repairing.repairing = true;
  Reply suspect = ReplyOf(3, 1, {{1, 1}}, "");
  suspect.suspect = true;
  Reply blank = ReplyOf(4, 0, {}, "");
  blank.blank = true;
  const Reply whole = ReplyOf(1, 2, {{1, 1}, {2, 2}}, "h");
  const Reply also = ReplyOf(5, 2, {{1, 1}, {2, 2}}, "h");
  const RepairPlan plan =
      Planned({5, 3, 3}, {whole, repairing, suspect, blank, also});
  ASSERT_EQ(plan.repairs.size(), 4u);
  EXPECT_EQ(plan.repairs[2].report, 1u);
  EXPECT_TRUE(plan.repairs[2].destructive);
  EXPECT_FALSE(plan.repairs[2].set_repairing);
  EXPECT_THAT(plan.repairs[2].copies,
              ElementsAre(CopyRun{Lsn(1), Lsn(2), 0b10001}));
  EXPECT_EQ(plan.repairs[3].report, 2u);
  EXPECT_TRUE(plan.repairs[3].set_repairing);
  EXPECT_TRUE(plan.repairs[3].after_write_quorum);
  EXPECT_THAT(plan.to_resync, ElementsAre(3u));
}

// ET1 (epoch_table.h): epoch 2 was installed on one replica only, whose copy of
// LSN 2 went bad; the log ends before that epoch began.
TEST(RepairPlanTest, NewTableIsThatOfTheHighestEpochUpToTheEnd) {
  const auto entries = [](const RepairPlan& plan) {
    std::vector<std::pair<uint64_t, uint64_t>> result;
    for (const EpochEntry& entry : plan.table.entries()) {
      result.emplace_back(entry.epoch.value, entry.start_lsn.value);
    }
    return result;
  };
  using Entries = std::vector<std::pair<uint64_t, uint64_t>>;
  EXPECT_EQ(entries(Planned(kTwoOfThree, {ReplyOf(1, 2, {{1, 1}, {2, 3}}, "hc"),
                                          ReplyOf(2, 1, {{1, 1}}, "h"),
                                          ReplyOf(3, 1, {{1, 1}}, "h")})),
            (Entries{{1, 1}, {9, 2}}));
  EXPECT_EQ(entries(Planned(kTwoOfThree, {ReplyOf(1, 2, {{1, 1}, {2, 2}}, "hh"),
                                          ReplyOf(2, 1, {{1, 1}}, "h")})),
            (Entries{{1, 1}, {2, 2}, {9, 3}}));
  const RepairPlan first =
      Planned(kTwoOfThree, {ReplyOf(1, 0, {}, ""), ReplyOf(2, 0, {}, "")});
  EXPECT_EQ(entries(first), (Entries{{9, 1}}));
  EXPECT_EQ(first.table.entries()[0].nonce, 99u);
}

}  // namespace
}  // namespace alpheus::recovery
