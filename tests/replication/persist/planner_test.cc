// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/planner.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "replication/persist/method_steps.h"
#include "tests/replication/persist/all_platforms.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr UpdateKind kKinds[] = {UpdateKind::kSingleton, UpdateKind::kCompound};
constexpr UpdateOperation kOperations[] = {UpdateOperation::kWrite,
                                           UpdateOperation::kWriteImmediate,
                                           UpdateOperation::kSend};

// Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm.
constexpr char kRow[] =
    "rq:writeimm(a);rsp:receive(&a);rsp:flush(&a);rsp:send(ack);"
    "rq:receive(ack)";

// All of 144 platforms, 2 kinds, 3 operations: one row, which is enough
// everywhere; anything else that is asked for is refused, and nothing else is
// given for it.
TEST(PlannerTest, AsksForAllThatCanBeAsked) {
  size_t planned = 0;
  for (const Platform& platform : AllPlatforms()) {
    for (const UpdateKind kind : kKinds) {
      for (const UpdateOperation operation : kOperations) {
        const auto plan = MakePlan(platform, kind, operation);
        const bool is_built_in = kind == UpdateKind::kSingleton &&
                                 operation == UpdateOperation::kWriteImmediate;
        ASSERT_EQ(plan.ok(), is_built_in) << PlatformToString(platform);
        if (plan.ok()) {
          ++planned;
          EXPECT_EQ(PlanToString(*plan),
                    std::string(kRow) +
                        " (Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm)");
          continue;
        }
        EXPECT_TRUE(absl::IsUnimplemented(plan.status()));
        EXPECT_THAT(
            plan.status().message(),
            AllOf(HasSubstr(UpdateKindName(kind)),
                  HasSubstr(UpdateOperationName(operation)),
                  HasSubstr(PlatformToString(platform)),
                  HasSubstr("built in are: singleton by WRITEIMM (Table 2")));
      }
    }
  }
  EXPECT_EQ(planned, AllPlatforms().size());
}

TEST(PlannerTest, RecordsAreSingletonsByWriteImmediate) {
  for (const Platform& platform : AllPlatforms()) {
    EXPECT_EQ(PlanToString(*MakeRecordPlan(platform)),
              PlanToString(*MakePlan(platform, UpdateKind::kSingleton,
                                     UpdateOperation::kWriteImmediate)));
  }
}

// What an executor relies on, of every row: the responder hears of the bytes
// after they are posted, and the ack ends what it begins.
TEST(PlannerTest, RowsTellBeforeTheyPersistAndAcknowledgeAfter) {
  for (const Method& method : Methods()) {
    const auto at = [&method](StepAction action) {
      return std::ranges::find(method.steps, action, &Step::action) -
             method.steps.begin();
    };
    EXPECT_LT(at(StepAction::kRequesterWriteImmediate),
              at(StepAction::kResponderReceiveAddress));
    EXPECT_LT(at(StepAction::kResponderReceiveAddress),
              at(StepAction::kResponderFlush));
    EXPECT_LT(at(StepAction::kResponderFlush),
              at(StepAction::kResponderSendAck));
    EXPECT_EQ(method.steps.back(), steps::kReceiveAck);
  }
}

}  // namespace
}  // namespace alpheus::testing
