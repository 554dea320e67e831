// SPDX-License-Identifier: Apache-2.0
// Each row of the taxonomy through the model of remote memory, with a power cut
// in every state; and the oracle itself: each weakening of a row is seen.
#include "tools/model/methods/row_exploration.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_steps.h"
#include "replication/persist/platform/method_table.h"
#include "tests/replication/persist/platform/all_platforms.h"
#include "tools/model/methods/weakening.h"

namespace alpheus::testing {

using model::RowVerdict;
using model::Weakening;
using replication::Platform;
using replication::TableRow;
using replication::UpdateKind;

namespace {

using Steps = std::vector<replication::Step>;

// Recovery does as the row needs it.
model::RowResult Explore(const TableRow& row,
                         std::span<const replication::Step> steps,
                         const Platform& platform,
                         bool relaxed_ordering = false) {
  return model::ExploreRow(
      {.platform = platform,
       .relaxed_ordering = relaxed_ordering,
       .applies_messages = replication::NeedsMessagesApplied(row.steps)},
      row.kind, steps);
}

RowVerdict VerdictOf(const TableRow& row, const Platform& platform) {
  return Explore(row, row.steps, platform).verdict;
}

template <class Check>
void ForEachRow(const Check& check) {
  for (const TableRow& row : replication::RowsOfTable()) {
    SCOPED_TRACE(replication::CellOf(row));
    check(row, replication::PlatformOfTable(row.configuration));
  }
}

bool Has(const TableRow& row, std::string_view words) {
  return replication::StepsToString(row.steps).find(words) != std::string::npos;
}

TEST(RowExplorationTest, RowsSuffice) {
  ForEachRow([](const TableRow& row, const Platform& platform) {
    const model::RowResult result = Explore(row, row.steps, platform);
    EXPECT_EQ(result.verdict, RowVerdict::kOk)
        << replication::StepsToString(row.steps);
    EXPECT_GE(result.states, 15u);
    EXPECT_GE(result.images, result.states);
  });
}

// Each step that is taken from a row is missed: the row loses the update, or
// turns the order round. Only a program that waits for an event which comes
// after that wait does nothing wrong: it never ends.
TEST(RowExplorationTest, EachWeakeningIsCaught) {
  ForEachRow([](const TableRow& row, const Platform& platform) {
    for (const Weakening& weakening : model::WeakeningsOf(row.steps)) {
      const RowVerdict verdict =
          Explore(row, weakening.steps, platform).verdict;
      const bool may_be_endless = weakening.kind == Weakening::Kind::kSwapped;
      EXPECT_NE(verdict, RowVerdict::kOk) << weakening.what;
      EXPECT_TRUE(verdict != RowVerdict::kEndless || may_be_endless)
          << weakening.what;
    }
  });
}

// Nothing suffices on DMP with DDIO but what the responder flushes.
TEST(RowExplorationTest, OnlyFlushedRowsSufficeOnTheWeakestPlatform) {
  ForEachRow([](const TableRow& row, const Platform& /*platform*/) {
    const bool is_flushed = Has(row, "rsp:flush") || Has(row, "rsp:copy+flush");
    EXPECT_EQ(
        VerdictOf(row, replication::PlatformOfTable(0)) == RowVerdict::kOk,
        is_flushed);
  });
}

// §3.2: on iWARP the completion of what was posted says nothing.
TEST(RowExplorationTest, IwarpBreaksWhatRestsOnCompletionsOfPostedOperations) {
  ForEachRow([](const TableRow& row, Platform platform) {
    platform.transport = replication::Transport::kIwarp;
    const bool rests = Has(row, "comp(") && !Has(row, "comp(flush)");
    EXPECT_EQ(VerdictOf(row, platform),
              rests ? RowVerdict::kLoss : RowVerdict::kOk);
  });
}

// P-R4: what is back to back, and kept as soon as it is visible.
TEST(RowExplorationTest, RelaxedOrderingBreaksWhatIsBackToBack) {
  ForEachRow([](const TableRow& row, const Platform& platform) {
    const bool breaks =
        platform.domain == replication::PersistenceDomain::kHierarchy &&
        row.kind == UpdateKind::kCompound &&
        row.operation != replication::UpdateOperation::kSend;
    EXPECT_EQ(
        Explore(row, row.steps, platform, /*relaxed_ordering=*/true).verdict,
        breaks ? RowVerdict::kOrder : RowVerdict::kOk);
  });
}

// §3.4: messages "are universal in that they can be used in all system
// configurations"; so is what the responder flushes.
TEST(RowExplorationTest, RowsOfTheWeakestPlatformSufficeEverywhere) {
  for (const TableRow& row : replication::RowsOfTable()) {
    if (row.configuration != 0) continue;
    for (const Platform& platform : AllPlatforms()) {
      EXPECT_EQ(VerdictOf(row, platform), RowVerdict::kOk)
          << replication::CellOf(row) << " on "
          << replication::PlatformToString(platform);
    }
  }
}

// All that can be declared, whatever its adapter has.
TEST(RowExplorationTest, PlansSufficeOnEveryPlatform) {
  size_t plans = 0;
  for (const Platform& platform : AllPlatforms()) {
    for (const TableRow& row : replication::RowsOfTable()) {
      if (row.configuration != replication::ConfigurationIndex(platform))
        continue;
      const replication::TablePlan plan =
          replication::PlanOfTable(platform, row.kind, row.operation);
      EXPECT_EQ(Explore(plan.row, plan.steps, platform).verdict,
                RowVerdict::kOk)
          << replication::PlatformToString(platform) << ": "
          << replication::StepsToString(plan.steps);
      ++plans;
    }
  }
  EXPECT_EQ(plans, 144u * 6);
}

// method.h has for what is built in on which platforms it is enough.
TEST(RowExplorationTest, BuiltInMethodsSufficeWhereTheyClaimTo) {
  for (const replication::Method& method : replication::Methods()) {
    for (const Platform& platform : AllPlatforms()) {
      const bool claims =
          ((method.sufficient_on >> replication::ConfigurationIndex(
                                        replication::AsInTables(platform))) &
           1) != 0;
      const RowVerdict verdict =
          model::ExploreRow({.platform = platform}, method.kind, method.steps)
              .verdict;
      EXPECT_TRUE(!claims || verdict == RowVerdict::kOk)
          << replication::PlatformToString(platform);
    }
  }
}

// --- The oracle --------------------------------------------------------------

RowVerdict VerdictOn(const std::string& platform, UpdateKind kind,
                     const Steps& steps) {
  return model::ExploreRow({.platform = *replication::ParsePlatform(platform)},
                           kind, steps)
      .verdict;
}

TEST(RowExplorationTest, NothingDoneIsALoss) {
  EXPECT_EQ(VerdictOn("wsp,infiniband", UpdateKind::kSingleton, {}),
            RowVerdict::kLoss);
}

TEST(RowExplorationTest, WaitForWhatWasNeverPostedIsEndless) {
  EXPECT_EQ(
      VerdictOn("wsp,infiniband", UpdateKind::kSingleton,
                {replication::steps::kWriteA, replication::steps::kFlushed}),
      RowVerdict::kEndless);
}

// §2: "a subsequent posted RDMA operation can be ordered before the FLUSH",
// which a fenced one can't (it waits for the FLUSH), nor an atomic WRITE.
TEST(RowExplorationTest, PostedOperationsPassAFlushAndAtomicOnesDoNot) {
  const auto with_second = [](const replication::Step& second) {
    return VerdictOn(
        "dmp,no-ddio,infiniband", UpdateKind::kCompound,
        {replication::steps::kWriteA, replication::steps::kFlush, second,
         replication::steps::kFlush, replication::steps::kFlushed});
  };
  EXPECT_EQ(with_second(replication::steps::kWriteB), RowVerdict::kOrder);
  EXPECT_EQ(with_second(replication::steps::kWriteAtomicB), RowVerdict::kOk);
  EXPECT_EQ(VerdictOn("dmp,no-ddio,infiniband", UpdateKind::kCompound,
                      Steps(std::begin(replication::steps::kWritesThenFlushes),
                            std::end(replication::steps::kWritesThenFlushes))),
            RowVerdict::kOk);
}

// RW3: an atomic WRITE has visibility's order, and no other.
TEST(RowExplorationTest, AtomicWriteIsNoFlush) {
  const Steps steps = {
      replication::steps::kWriteA, replication::steps::kWriteAtomicB,
      replication::steps::kFlush, replication::steps::kFlushed};
  EXPECT_EQ(VerdictOn("dmp,no-ddio,infiniband", UpdateKind::kCompound, steps),
            RowVerdict::kOrder);
  EXPECT_EQ(VerdictOn("mhp,infiniband", UpdateKind::kCompound, steps),
            RowVerdict::kOk);
}

// The buffer is the log only for a recovery that reads it.
TEST(RowExplorationTest, MessagesThatNobodyAppliesAreLost) {
  const Platform platform = *replication::ParsePlatform("mhp,pm,infiniband");
  for (const bool applies : {false, true}) {
    EXPECT_EQ(model::ExploreRow(
                  {.platform = platform, .applies_messages = applies},
                  UpdateKind::kSingleton, replication::steps::kSendThenFlush)
                  .verdict,
              applies ? RowVerdict::kOk : RowVerdict::kLoss);
  }
}

TEST(RowExplorationTest, VerdictsHaveNames) {
  EXPECT_STREQ(model::RowVerdictName(RowVerdict::kOk), "OK");
  EXPECT_STREQ(model::RowVerdictName(RowVerdict::kEndless), "ENDLESS");
  EXPECT_STREQ(model::RowVerdictName(RowVerdict::kOrder), "ORDER");
  EXPECT_STREQ(model::RowVerdictName(RowVerdict::kLoss), "LOSS");
}

// --- Weakenings --------------------------------------------------------------

// A line for each.
std::string WhatIsWeakened(std::span<const replication::Step> steps) {
  std::string all;
  for (const Weakening& weakening : model::WeakeningsOf(steps)) {
    all += weakening.what + " -> " +
           replication::StepsToString(weakening.steps) + "\n";
  }
  return all;
}

TEST(WeakeningTest, StepsAreDroppedWithWhatWaitsForThem) {
  const std::string expected =
      "without rq:writeimm(a) and rsp:receive(&a) -> "
      "rsp:flush(&a);rsp:send(ack);rq:receive(ack)\n"
      "rq:receive(ack) before rq:writeimm(a) -> "
      "rq:receive(ack);rsp:receive(&a);rsp:flush(&a);rsp:send(ack);"
      "rq:writeimm(a)\n"
      "without rsp:receive(&a) -> "
      "rq:writeimm(a);rsp:flush(&a);rsp:send(ack);rq:receive(ack)\n"
      "rsp:flush(&a) before rsp:receive(&a) -> "
      "rq:writeimm(a);rsp:flush(&a);rsp:receive(&a);rsp:send(ack);"
      "rq:receive(ack)\n"
      "without rsp:flush(&a) -> "
      "rq:writeimm(a);rsp:receive(&a);rsp:send(ack);rq:receive(ack)\n"
      "rsp:send(ack) before rsp:flush(&a) -> "
      "rq:writeimm(a);rsp:receive(&a);rsp:send(ack);rsp:flush(&a);"
      "rq:receive(ack)\n"
      "without rsp:send(ack) and rq:receive(ack) -> "
      "rq:writeimm(a);rsp:receive(&a);rsp:flush(&a)\n"
      "without rq:receive(ack) -> "
      "rq:writeimm(a);rsp:receive(&a);rsp:flush(&a);rsp:send(ack)\n";
  EXPECT_EQ(WhatIsWeakened(replication::steps::kWriteImmediateThenAck),
            expected);
}

TEST(WeakeningTest, FlushBecomesACompletion) {
  const std::string expected =
      "without rq:write(a) -> rq:flush;rq:comp(flush)\n"
      "rq:flush before rq:write(a) -> rq:flush;rq:write(a);rq:comp(flush)\n"
      "without rq:flush and rq:comp(flush) -> rq:write(a)\n"
      "rq:comp(flush) before rq:flush -> rq:write(a);rq:comp(flush);rq:flush\n"
      "rq:comp(write(a)) for rq:flush;rq:comp(flush) -> "
      "rq:write(a);rq:comp(write(a))\n"
      "without rq:comp(flush) -> rq:write(a);rq:flush\n";
  EXPECT_EQ(WhatIsWeakened(replication::steps::kWriteThenFlush), expected);
}

TEST(WeakeningTest, CopiesLoseTheirFlushAndTheirOrder) {
  std::vector<std::string> weaker;
  for (const Weakening& weakening :
       model::WeakeningsOf(replication::steps::kSendBothThenFlushedAck)) {
    if (weakening.kind == Weakening::Kind::kWeaker) {
      weaker.push_back(weakening.what);
    }
  }
  const std::vector<std::string> expected = {
      "rsp:copy(a,b) for rsp:copy+flush(a,b)",
      "rsp:copy+flush(b);rsp:copy+flush(a) for rsp:copy+flush(a,b)",
      "rsp:copy(a,b);rsp:flush(&a);rsp:flush(&b) for rsp:copy+flush(a,b)"};
  EXPECT_EQ(weaker, expected);
}

}  // namespace
}  // namespace alpheus::testing
