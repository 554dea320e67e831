// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/join_plan.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/recovery/replica/replica_world.h"
#include "tests/support/oracles/state_report_world.h"

namespace alpheus::testing {

using recovery::JoinPlan;

namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kCapacity = 1024;
constexpr uint64_t kWhole = std::numeric_limits<uint64_t>::max() / 2;

class JoinPlanTest : public ::testing::Test {
 protected:
  // Epoch 5 with records 1 to 3, epoch 6 with 4 and 5; each takes one line.
  JoinPlanTest() {
    log_.OpenEpoch(Epoch(5));
    for (int i = 0; i < 3; ++i) log_.Append("old");
    start_ = log_.end();
    log_.OpenEpoch(Epoch(6));
    for (int i = 0; i < 2; ++i) log_.Append("new");
    report_.node = NodeId(3);
    report_.incarnation = 103;
    report_.ring_capacity = kCapacity;
    report_.log_epoch = Epoch(6);
  }

  recovery::RunningEpoch Running() {
    recovery::RunningEpoch running;
    running.configuration.members = {{NodeId(1), 101}, {NodeId(3), 103}};
    running.epoch = log_.table().entries().back().epoch;
    running.table = log_.table();
    running.start = start_;
    running.head = log_.head();
    running.finished = {log_.end().lsn - 1, log_.end().offset};
    running.durable_lsn = durable_;
    return running;
  }
  // Gives the replica these records as the primary has them.
  void Have(const LogImage& log, Lsn first, Lsn last) {
    RecordCursor cursor(log.ring(), log.table(), log.PositionOf(first),
                        log.end().offset);
    for (Lsn lsn = first; lsn <= last; lsn = lsn + 1) {
      ASSERT_EQ(cursor.Next(), RecordCursor::Step::kRecord);
      const RecordView& r = cursor.record();
      recovery::AddRecord(&report_,
                          {r.epoch(), r.offset, r.header.header_crc(),
                           static_cast<uint32_t>(r.bytes / kLineBytes)});
    }
  }
  JoinPlan Plan(uint64_t slice = kWhole) {
    recovery::JoinPlanner planner(log_.ring(), Running(), report_);
    for (;;) {
      const absl::StatusOr<bool> done = planner.Continue(slice);
      EXPECT_TRUE(done.ok()) << done.status();
      if (!done.ok() || *done) return planner.plan();
    }
  }
  absl::Status PlanFails() {
    recovery::JoinPlanner planner(log_.ring(), Running(), report_);
    return planner.Continue(kWhole).status();
  }

  LogImage log_{kCapacity};
  LogPosition start_;
  Lsn durable_{5};
  recovery::StateReport report_;
};

TEST_F(JoinPlanTest, WhatIsTheSameStays) {
  Have(log_, Lsn(1), Lsn(4));
  report_.proven_lsn = Lsn(3);
  const JoinPlan plan = Plan();
  EXPECT_THAT(plan.copies, IsEmpty());
  EXPECT_FALSE(plan.set_repairing);
  EXPECT_EQ(plan.next, log_.PositionOf(Lsn(5)));
}

// JP2: a record that it proves and can't read is copied; one that it never
// reported is not.
TEST_F(JoinPlanTest, WhatAMemberOfThisEpochProvesIsCopied) {
  Have(log_, Lsn(1), Lsn(2));
  report_.proven_lsn = Lsn(4);
  for (const uint64_t slice : {kWhole, uint64_t{1}}) {
    const JoinPlan plan = Plan(slice);
    ASSERT_THAT(plan.copies, SizeIs(1));
    EXPECT_EQ(plan.copies[0].place, log_.PositionOf(Lsn(3)).offset.value);
    EXPECT_EQ(plan.copies[0].bytes, 2 * kLineBytes);
    EXPECT_EQ(plan.records, 2u);
    EXPECT_FALSE(plan.set_repairing);
    EXPECT_EQ(plan.next, log_.PositionOf(Lsn(5)));
  }
}

TEST_F(JoinPlanTest, MemberOfAnEarlierEpochGetsThatOfBefore) {
  report_.log_epoch = Epoch(5);
  Have(log_, Lsn(1), Lsn(1));
  const JoinPlan plan = Plan();
  EXPECT_EQ(plan.records, 2u);
  EXPECT_FALSE(plan.set_repairing);
  EXPECT_EQ(plan.next, start_);
}

// JP3.
TEST_F(JoinPlanTest, OtherRecordsAreOverwrittenUnderAMark) {
  LogImage other(kCapacity);
  other.OpenEpoch(Epoch(4));
  for (int i = 0; i < 2; ++i) other.Append("own");
  report_.log_epoch = Epoch(4);
  Have(other, Lsn(1), Lsn(2));
  EXPECT_TRUE(Plan().set_repairing);
  EXPECT_EQ(Plan().records, 3u);
  report_.repairing = true;
  EXPECT_FALSE(Plan().set_repairing);  // it is
}

// The same; the replica does not name them (STR4 of state_report.h).
TEST_F(JoinPlanTest, OtherRecordsThatAreNotNamedAreOverwrittenUnderAMark) {
  LogImage other(kCapacity);
  other.OpenEpoch(Epoch(4));
  for (int i = 0; i < 2; ++i) other.Append("own");
  report_.log_epoch = Epoch(4);
  report_.table = other.table();
  report_.head = other.head();
  Have(other, Lsn(1), Lsn(2));
  report_ = Shortened(report_, 2);
  ASSERT_TRUE(report_.place.has_value());
  EXPECT_TRUE(Plan().set_repairing);
  EXPECT_EQ(Plan().records, 3u);
}

// JP1: what is not named is not compared; the rest of the plan is the same.
TEST_F(JoinPlanTest, PlanForAShortReportIsThatForAWholeOne) {
  report_.table = log_.table();
  report_.head = log_.head();
  report_.proven_lsn = Lsn(3);
  Have(log_, Lsn(1), Lsn(4));
  const JoinPlan whole = Plan();
  for (uint64_t records = 1; records <= 4; ++records) {
    const recovery::StateReport report = report_;
    report_ = Shortened(report, records);
    const JoinPlan plan = Plan();
    EXPECT_EQ(plan.next, whole.next) << records;
    EXPECT_EQ(plan.records, whole.records) << records;
    EXPECT_EQ(plan.set_repairing, whole.set_repairing) << records;
    report_ = report;
  }
}

// Bytes of a peer: a place after the end of the log, or with too few lines
// before it, is not looked at; one with another record there is named.
TEST_F(JoinPlanTest, PlaceThatCannotBeIsNotBelieved) {
  report_.table = log_.table();
  report_.head = log_.head();
  report_.proven_lsn = Lsn(3);
  Have(log_, Lsn(1), Lsn(4));
  report_ = Shortened(report_, 3);
  ASSERT_EQ(report_.place, log_.PositionOf(Lsn(4)));
  for (const uint64_t line : {15, 2}) {
    report_.place->offset = RingOffset(line * kLineBytes);
    const JoinPlan plan = Plan();
    EXPECT_THAT(plan.copies, IsEmpty()) << line;
    EXPECT_EQ(plan.next, log_.PositionOf(Lsn(5))) << line;
  }
  report_.place->offset = RingOffset(4 * kLineBytes);
  const absl::Status status = PlanFails();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("its place, LSN 4"));
}

// A record behind those that the log kept is no record of the log any more.
TEST_F(JoinPlanTest, RecordsBehindTheLogNeedNoMark) {
  LogImage other = log_;
  other.Truncate(Lsn(3));
  other.Append("own");
  report_.log_epoch = Epoch(5);
  Have(other, Lsn(1), Lsn(4));
  const JoinPlan plan = Plan();
  EXPECT_FALSE(plan.set_repairing);
  EXPECT_THAT(plan.copies, IsEmpty());
}

// JP2: nobody knows more of what it acknowledged than that it is durable.
TEST_F(JoinPlanTest, MemberThatKnowsNothingGetsWhatIsDurable) {
  report_.suspect = true;
  durable_ = Lsn(4);
  JoinPlan plan = Plan();
  EXPECT_EQ(plan.records, 4u);
  EXPECT_EQ(plan.next, log_.PositionOf(Lsn(5)));
  EXPECT_FALSE(plan.set_repairing);
  report_.proven_lsn = Lsn(5);
  EXPECT_EQ(Plan().next, log_.end());
  report_.log_epoch = Epoch(5);
  plan = Plan();
  EXPECT_EQ(plan.next, start_);
  EXPECT_TRUE(plan.set_repairing);
}

TEST_F(JoinPlanTest, LogThatBeginsBehindItsEpochIsJoinedThere) {
  log_.CleanThrough(Lsn(4));
  report_.log_epoch = Epoch(5);
  const JoinPlan plan = Plan();
  EXPECT_EQ(plan.next, log_.head());
  EXPECT_THAT(plan.copies, IsEmpty());
}

// P-L5.
TEST_F(JoinPlanTest, PadGoesWithTheRecordBehindIt) {
  log_.CleanThrough(Lsn(5));
  while (log_.end().offset.value + 3 * kLineBytes <= kCapacity) {
    log_.Append("more");
  }
  const Lsn before = log_.end().lsn - 1;
  log_.CleanThrough(before);
  const uint64_t pad = log_.end().offset.value;
  const std::string large(3 * kLineBytes, 'x');
  log_.Append(large);
  ASSERT_GT(log_.end().offset.value, kCapacity);
  report_.suspect = true;
  durable_ = log_.end().lsn - 1;
  const JoinPlan plan = Plan();
  ASSERT_THAT(plan.copies, SizeIs(2));
  EXPECT_EQ(plan.copies[0], (recovery::CopyRange{pad, kLineBytes, 0}));
  EXPECT_EQ(plan.copies[1].place, 0u);
  EXPECT_EQ(plan.records, 1u);
}

TEST_F(JoinPlanTest, MemberThatProvesWhatWasNeverWrittenIsRefused) {
  report_.proven_lsn = Lsn(6);
  const absl::Status status = PlanFails();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("reports LSN 6 of epoch 6"));
}

TEST_F(JoinPlanTest, OwnRingThatCannotBeReadIsSaid) {
  log_.ring().At(log_.PositionOf(Lsn(2)).offset)[0] ^= std::byte{1};
  report_.log_epoch = Epoch(5);
  const absl::Status status = PlanFails();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("primary's own ring"));
}

TEST_F(JoinPlanTest, OnlyMembersJoin) {
  EXPECT_TRUE(recovery::CheckJoins(Running(), kCapacity, report_).ok());
  report_.incarnation = 104;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      recovery::CheckJoins(Running(), kCapacity, report_)));
  report_.incarnation = 103;
  const absl::Status other =
      recovery::CheckJoins(Running(), 2 * kCapacity, report_);
  EXPECT_TRUE(absl::IsFailedPrecondition(other));
  EXPECT_THAT(std::string(other.message()), HasSubstr("a ring of 1024 bytes"));
}

}  // namespace
}  // namespace alpheus::testing
