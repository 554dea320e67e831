// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/plan/planner.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_steps.h"
#include "replication/persist/platform/method_table.h"
#include "tests/replication/persist/platform/all_platforms.h"
#include "tools/model/methods/row_exploration.h"

namespace alpheus::testing {

using replication::Platform;
using replication::PlatformToString;
using replication::StepAction;
using replication::UpdateKind;
using replication::UpdateOperation;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr UpdateKind kKinds[] = {UpdateKind::kSingleton, UpdateKind::kCompound};
constexpr UpdateOperation kOperations[] = {UpdateOperation::kWrite,
                                           UpdateOperation::kWriteImmediate,
                                           UpdateOperation::kSend};

bool IsRecord(UpdateKind kind, UpdateOperation operation) {
  return kind == UpdateKind::kSingleton &&
         operation == UpdateOperation::kWriteImmediate;
}
bool IsSuperline(UpdateKind kind, UpdateOperation operation) {
  return kind == UpdateKind::kCompound && operation == UpdateOperation::kSend;
}

// All of 144 platforms, 2 kinds, 3 operations: what records and superlines go
// by; anything else that is asked for is refused, and nothing else is given for
// it.
TEST(PlannerTest, AsksForAllThatCanBeAsked) {
  size_t planned = 0;
  for (const Platform& platform : AllPlatforms()) {
    for (const UpdateKind kind : kKinds) {
      for (const UpdateOperation operation : kOperations) {
        const auto plan = replication::MakePlan(platform, kind, operation);
        ASSERT_EQ(plan.ok(),
                  IsRecord(kind, operation) || IsSuperline(kind, operation))
            << PlatformToString(platform);
        if (plan.ok()) {
          ++planned;
          const bool sends =
              plan->steps.front() == replication::steps::kSendBoth;
          EXPECT_EQ(sends, IsSuperline(kind, operation));
          continue;
        }
        EXPECT_TRUE(absl::IsUnimplemented(plan.status()));
        EXPECT_THAT(
            plan.status().message(),
            AllOf(HasSubstr(replication::UpdateKindName(kind)),
                  HasSubstr(replication::UpdateOperationName(operation)),
                  HasSubstr(PlatformToString(platform)),
                  HasSubstr("built in are: singleton by WRITEIMM (Table 2")));
      }
    }
  }
  EXPECT_EQ(planned, 2 * AllPlatforms().size());
}

// On each platform the row of the table, and on the weakest what it always was.
TEST(PlannerTest, RecordsAreSingletonsByWriteImmediate) {
  for (const Platform& platform : AllPlatforms()) {
    EXPECT_EQ(replication::StepsToString(
                  replication::MakeRecordPlan(platform)->steps),
              replication::StepsToString(
                  replication::PlanOfTable(platform, UpdateKind::kSingleton,
                                           UpdateOperation::kWriteImmediate)
                      .steps))
        << PlatformToString(platform);
  }
  constexpr char kWeakest[] =
      "rq:writeimm(a);rsp:receive(&a);rsp:flush(&a);rsp:send(ack);"
      "rq:receive(ack) (Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm)";
  EXPECT_EQ(replication::PlanToString(*replication::MakeRecordPlan(Platform())),
            kWeakest);
  EXPECT_EQ(replication::PlanToString(replication::RecordPlanOfBackup()),
            kWeakest);
}

// Where nobody has checked the bytes none counts before the backup has.
TEST(PlannerTest, SessionsWaitForTheBackupWhereTheLinkChecksNothing) {
  for (const Platform& platform : AllPlatforms()) {
    const bool checks =
        platform.transport == replication::Transport::kInfiniBand;
    EXPECT_EQ(replication::ChecksBytes(platform), checks);
    EXPECT_EQ(
        replication::PlanToString(*replication::MakeSessionPlan(platform)),
        replication::PlanToString(checks
                                      ? *replication::MakeRecordPlan(platform)
                                      : replication::RecordPlanOfBackup()))
        << PlatformToString(platform);
  }
}

// The model says so of each method, on each configuration that it is for.
TEST(PlannerTest, MethodsAreEnoughWhereTheySay) {
  for (const replication::Method& method : replication::Methods()) {
    EXPECT_FALSE(replication::NeedsMessagesApplied(method.steps))
        << method.cell;
    for (size_t i = 0; i < replication::kConfigurationCount; ++i) {
      if ((method.sufficient_on >> i & 1U) == 0) continue;
      EXPECT_EQ(model::ExploreRow({.platform = replication::PlatformOfTable(i)},
                                  method.kind, method.steps)
                    .verdict,
                model::RowVerdict::kOk)
          << method.cell << " on " << i;
    }
  }
}

// A superline never waits in a message for a recovery that applies it, and its
// ack is behind a flush, whatever the platform.
TEST(PlannerTest, SuperlinesAreAppliedAndFlushedBeforeTheAck) {
  for (const Platform& platform : AllPlatforms()) {
    EXPECT_EQ(replication::StepsToString(
                  replication::MakeSuperlinePlan(platform)->steps),
              "rq:send(a,b);rsp:receive(a,b);rsp:copy+flush(a,b);"
              "rsp:send(ack);rq:receive(ack)")
        << PlatformToString(platform);
  }
}

// Executors rely on this in every row that has an ack: the responder hears of
// the bytes after they are posted, and the ack ends what it begins.
TEST(PlannerTest, RowsTellBeforeTheyPersistAndAcknowledgeAfter) {
  for (const replication::Method& method : replication::Methods()) {
    if (method.steps.back() != replication::steps::kReceiveAck) continue;
    const auto at = [&method](auto... actions) {
      return std::ranges::find_if(method.steps,
                                  [&](const replication::Step& step) {
                                    return ((step.action == actions) || ...);
                                  }) -
             method.steps.begin();
    };
    const auto received =
        at(StepAction::kResponderReceiveAddress, StepAction::kResponderReceive);
    const auto flushed =
        at(StepAction::kResponderFlush, StepAction::kResponderCopyAndFlush);
    EXPECT_LT(
        at(StepAction::kRequesterWriteImmediate, StepAction::kRequesterSend),
        received);
    EXPECT_LT(received, flushed);
    EXPECT_LT(flushed, at(StepAction::kResponderSendAck));
  }
}

}  // namespace
}  // namespace alpheus::testing
