// SPDX-License-Identifier: Apache-2.0
// The rows as data, and what is planned from them. Their text is in
// tests/golden/remote_persistence_methods.csv; row_exploration_test.cc finds
// out whether they are enough.
#include "replication/persist/platform/method_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_steps.h"
#include "tests/replication/persist/platform/all_platforms.h"

namespace alpheus::testing {

using replication::CellOf;
using replication::PlanOfTable;
using replication::RowsOfTable;
using replication::StepsToString;
using replication::TablePlan;
using replication::TableRow;
using replication::UpdateKind;
using replication::UpdateOperation;

namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::set<std::string> SequencesOf(UpdateKind kind) {
  std::set<std::string> sequences;
  for (const TableRow& row : RowsOfTable()) {
    if (row.kind == kind) sequences.insert(StepsToString(row.steps));
  }
  return sequences;
}

TEST(MethodTableTest, HasARowForEachConfigurationKindAndOperation) {
  const auto rows = RowsOfTable();
  ASSERT_EQ(rows.size(), 72u);
  std::set<std::string> cells;
  for (const TableRow& row : rows) {
    cells.insert(CellOf(row));
    EXPECT_FALSE(row.steps.empty());
  }
  EXPECT_EQ(cells.size(), 72u);
}

// §1: "10 distinct methods for remote persistence of singleton RDMA updates".
TEST(MethodTableTest, HasTenDistinctSingletonSequences) {
  EXPECT_EQ(SequencesOf(UpdateKind::kSingleton).size(), 10u);
}

// §1: "9 additional methods [...] for compound updates", of 12 that are
// distinct; the four that send are singletons' with a,b for a.
TEST(MethodTableTest, HasTwelveDistinctCompoundSequencesFourOfThemKnown) {
  const auto singletons = SequencesOf(UpdateKind::kSingleton);
  const auto compounds = SequencesOf(UpdateKind::kCompound);
  EXPECT_EQ(compounds.size(), 12u);
  const auto known = std::ranges::count_if(compounds, [&](std::string steps) {
    for (size_t at = 0; (at = steps.find("a,b")) != std::string::npos;) {
      steps.erase(at + 1, 2);
    }
    return singletons.contains(steps);
  });
  EXPECT_EQ(known, 4);
}

TEST(MethodTableTest, ConfigurationsAreThoseOfTheFirstTable) {
  for (size_t i = 0; i < replication::kConfigurationCount; ++i) {
    EXPECT_EQ(replication::ConfigurationIndex(replication::PlatformOfTable(i)),
              i);
  }
}

TEST(MethodTableTest, RowsCiteTheirCell) {
  EXPECT_EQ(CellOf(replication::RowOfTable(0, UpdateKind::kSingleton,
                                           UpdateOperation::kWriteImmediate)),
            "Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm");
  EXPECT_EQ(CellOf(replication::RowOfTable(11, UpdateKind::kCompound,
                                           UpdateOperation::kSend)),
            "Table 3, WSP, not DDIO + PM-RQWRB, Send");
}

// Executors run the table's methods.
TEST(MethodTableTest, BuiltInMethodsAreCells) {
  for (const replication::Method& method : replication::Methods()) {
    const auto rows = RowsOfTable();
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const TableRow& row) {
      return CellOf(row) == method.cell && row.kind == method.kind &&
             row.operation == method.operation &&
             std::ranges::equal(row.steps, method.steps);
    })) << method.cell;
  }
}

// Only where the buffer outlives the power may it be the log.
TEST(MethodTableTest, MessagesAreAppliedOnlyFromPersistentBuffers) {
  size_t rows = 0;
  for (const TableRow& row : RowsOfTable()) {
    if (!replication::NeedsMessagesApplied(row.steps)) continue;
    ++rows;
    EXPECT_EQ(row.operation, UpdateOperation::kSend);
    EXPECT_EQ(replication::PlatformOfTable(row.configuration).receive_buffers,
              replication::ReceiveBuffers::kPmem);
  }
  EXPECT_EQ(rows, 10u);  // all with PM but DMP with DDIO
}

// --- Plans -------------------------------------------------------------------

replication::Platform Configuration(const std::string& words) {
  return *replication::ParsePlatform(words);
}

TablePlan SingletonWrite(const std::string& words) {
  return PlanOfTable(Configuration(words), UpdateKind::kSingleton,
                     UpdateOperation::kWrite);
}

TEST(TablePlannerTest, TablesHoldForTheAdapterTheyAreMadeFor) {
  for (const TableRow& row : RowsOfTable()) {
    const TablePlan plan =
        PlanOfTable(replication::PlatformOfTable(row.configuration), row.kind,
                    row.operation);
    EXPECT_EQ(plan.row.configuration, row.configuration);
    EXPECT_TRUE(std::ranges::equal(plan.steps, row.steps));
  }
}

// §3.2: "the methods for remote persistence for WSP essentially mimic the
// corresponding methods for [...] MHP on iWARP".
TEST(TablePlannerTest, IwarpTakesWholeSystemForHierarchy) {
  for (const std::string rest : {",ddio,dram", ",ddio,pm", ",no-ddio,pm"}) {
    for (const UpdateKind kind : replication::kUpdateKinds) {
      for (const UpdateOperation operation : replication::kUpdateOperations) {
        const TablePlan plan =
            PlanOfTable(Configuration("wsp,iwarp" + rest), kind, operation);
        const TablePlan hierarchy = PlanOfTable(
            Configuration("mhp,infiniband" + rest), kind, operation);
        EXPECT_EQ(CellOf(plan.row), CellOf(hierarchy.row));
        EXPECT_THAT(plan.notes, Contains(HasSubstr("the row is MHP's")));
      }
    }
  }
}

TEST(TablePlannerTest, SoftwareAdapterHasDdioWhateverIsSaid) {
  EXPECT_EQ(StepsToString(SingletonWrite("dmp,no-ddio,tcp").steps),
            StepsToString(replication::steps::kWriteThenAck));
  EXPECT_EQ(StepsToString(SingletonWrite("dmp,no-ddio,iwarp").steps),
            StepsToString(replication::steps::kWriteThenFlush));
}

TEST(TablePlannerTest, AtomicWriteThatIsNotThereIsEmulatedAndSaid) {
  const auto plan_of = [](const std::string& words) {
    return PlanOfTable(Configuration(words), UpdateKind::kCompound,
                       UpdateOperation::kWrite);
  };
  const TablePlan with = plan_of("dmp,no-ddio,infiniband,atomic-write");
  EXPECT_EQ(StepsToString(with.steps),
            "rq:write(a);rq:flush;rq:writeatomic(b);rq:flush;rq:comp(flush)");
  const TablePlan without = plan_of("dmp,no-ddio,infiniband");
  EXPECT_EQ(StepsToString(without.steps),
            "rq:write(a);rq:flush;rq:comp(flush);"
            "rq:write(b);rq:flush;rq:comp(flush)");
  EXPECT_THAT(with.notes, Not(Contains(HasSubstr("atomic WRITE"))));
  EXPECT_THAT(without.notes, Contains(HasSubstr("atomic WRITE")));
}

TEST(TablePlannerTest, AssumptionsAreSaid) {
  EXPECT_THAT(SingletonWrite("mhp,infiniband,native-flush").notes, IsEmpty());
  EXPECT_THAT(SingletonWrite("mhp,infiniband").notes,
              Contains(HasSubstr("FLUSH is a READ")));
  EXPECT_THAT(
      PlanOfTable(Configuration("mhp,infiniband"), UpdateKind::kSingleton,
                  UpdateOperation::kWriteImmediate)
          .notes,
      Contains(HasSubstr("immediate may be lost")));
  EXPECT_THAT(PlanOfTable(Configuration("mhp,pm,infiniband"),
                          UpdateKind::kSingleton, UpdateOperation::kSend)
                  .notes,
              Contains(HasSubstr("Recovery must apply")));
}

TEST(TablePlannerTest, CostsAreRoundTripsAndStepsOfTheResponder) {
  const replication::PlanCost acked =
      replication::CostOf(replication::steps::kWritesThenAcks, {});
  EXPECT_EQ(acked.round_trips, 2);
  EXPECT_EQ(acked.responder_steps, 6);
  const replication::PlanCost one_sided =
      replication::CostOf(replication::steps::kWriteThenAtomicThenFlush, {});
  EXPECT_EQ(one_sided.round_trips, 1);
  EXPECT_EQ(one_sided.responder_steps, 0);
  EXPECT_LT(one_sided, acked);
}

TEST(TablePlannerTest, CheapestIsNoDearerThanAny) {
  for (const replication::Platform& platform : AllPlatforms()) {
    for (const UpdateKind kind : replication::kUpdateKinds) {
      const auto cost = [](const TablePlan& plan) {
        return replication::CostOf(plan.steps, {});
      };
      const replication::PlanCost cheapest =
          cost(replication::CheapestOfTable(platform, kind, {}));
      for (const UpdateOperation operation : replication::kUpdateOperations) {
        EXPECT_LE(cheapest, cost(PlanOfTable(platform, kind, operation)));
      }
    }
  }
}

// A message holds both updates, so that even two need no second one.
TEST(TablePlannerTest, CheapestHasOneRoundTrip) {
  for (const replication::Platform& platform : AllPlatforms()) {
    for (const UpdateKind kind : replication::kUpdateKinds) {
      const TablePlan plan = replication::CheapestOfTable(platform, kind, {});
      EXPECT_EQ(replication::CostOf(plan.steps, {}).round_trips, 1)
          << replication::PlatformToString(platform);
    }
  }
}

// It would be copied from there later.
TEST(TablePlannerTest, AWriteIsCheaperThanAMessageThatStaysInItsBuffer) {
  EXPECT_EQ(replication::CheapestOfTable(Configuration("mhp,pm,infiniband"),
                                         UpdateKind::kCompound, {})
                .row.operation,
            UpdateOperation::kWrite);
}

// Table 2's note.
TEST(TablePlannerTest, MeasuredCostsMayPreferAMessage) {
  const replication::Platform platform = Configuration("mhp,dram,infiniband");
  const auto cheapest = [&](const replication::RoundTripCosts& costs) {
    return replication::CheapestOfTable(platform, UpdateKind::kSingleton, costs)
        .row.operation;
  };
  EXPECT_EQ(cheapest({}), UpdateOperation::kWrite);
  EXPECT_EQ(cheapest({.flush = 2, .exchange = 1.5}), UpdateOperation::kSend);
}

}  // namespace
}  // namespace alpheus::testing
