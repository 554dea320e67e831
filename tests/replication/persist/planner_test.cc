// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/planner.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/replication/persist/all_platforms.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr UpdateKind kKinds[] = {UpdateKind::kSingleton, UpdateKind::kCompound};
constexpr UpdateOperation kOperations[] = {UpdateOperation::kWrite,
                                           UpdateOperation::kWriteImmediate,
                                           UpdateOperation::kSend};

// Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm, as it is printed there.
constexpr char kRow[] =
    "Rq WriteImm(a), Rsp Receive(&a), Rsp flush(&a), Rsp Send(ack), "
    "Rq Receive(ack)";

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
    const auto at = [&method](Step step) {
      return std::ranges::find(method.steps, step) - method.steps.begin();
    };
    EXPECT_LT(at(Step::kRequesterWriteImmediate), at(Step::kResponderReceive));
    EXPECT_LT(at(Step::kResponderReceive), at(Step::kResponderFlush));
    EXPECT_LT(at(Step::kResponderFlush), at(Step::kResponderSendAck));
    EXPECT_EQ(method.steps.back(), Step::kRequesterReceiveAck);
  }
}

}  // namespace
}  // namespace alpheus::testing
