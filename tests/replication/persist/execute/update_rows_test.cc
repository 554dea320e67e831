// SPDX-License-Identifier: Apache-2.0
// The tables' rows as both executors run them, on a simulated network, with a
// power cut at the responder in every state of a run: between any two events,
// and before each primitive of its memory.
#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "replication/persist/plan/table_planner.h"
#include "replication/persist/platform/method_steps.h"
#include "replication/persist/platform/method_table.h"
#include "tests/replication/persist/execute/update_world.h"
#include "tools/model/methods/row_exploration.h"

namespace alpheus::testing {

using replication::Platform;
using replication::Transport;
using replication::UpdateKind;

namespace {

constexpr uint64_t kUpdatesOfARun = 5;  // more than there are buffers
constexpr uint64_t kSeeds = 6;
constexpr uint64_t kSeedsMax = 200;

struct Verdict {
  uint64_t losses = 0;     // persisted, said the requester, and is not there
  uint64_t disorders = 0;  // b without its a
  uint64_t images = 0;
  uint64_t persisted = 0;

  void operator+=(const Verdict& more) {
    losses += more.losses;
    disorders += more.disorders;
    images += more.images;
    persisted += more.persisted;
  }
};

class Judge {
 public:
  Judge(SimUpdates& updates, UpdateKind kind)
      : updates_(updates), is_compound_(kind == UpdateKind::kCompound) {}

  void Look() {
    for (const FoundUpdates& found : updates_.FindAfterCut()) Add(found);
  }
  void Add(const FoundUpdates& found) {
    ++verdict_.images;
    const uint64_t persisted = updates_.persisted();
    const bool is_whole =
        found.whole >= persisted && (!is_compound_ || found.b >= persisted);
    verdict_.losses += is_whole ? 0 : 1;
    verdict_.disorders += found.b > found.whole ? 1 : 0;
  }
  Verdict Result() {
    verdict_.persisted = updates_.persisted();
    return verdict_;
  }

 private:
  SimUpdates& updates_;
  const bool is_compound_;
  Verdict verdict_;
};

// A run with cuts in each state; then one with the power off, somewhere.
Verdict Run(uint64_t seed, const Platform& truth,
            std::span<const replication::Step> steps, UpdateKind kind) {
  SimUpdates updates(seed, truth, steps, kind, kUpdatesOfARun);
  Judge judge(updates, kind);
  updates.SetOnPrimitive([&judge] { judge.Look(); });
  uint64_t events = 0;
  do {
    judge.Look();
    ++events;
  } while (updates.Step());
  judge.Look();
  Verdict verdict = judge.Result();

  SimUpdates again(seed, truth, steps, kind, kUpdatesOfARun);
  for (uint64_t i = seed * 7919 % events; i > 0; --i) again.Step();
  Judge after(again, kind);
  after.Add(again.Cut());
  verdict += after.Result();
  return verdict;
}

Verdict RunSeeds(const Platform& truth,
                 std::span<const replication::Step> steps, UpdateKind kind) {
  Verdict verdict;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    verdict += Run(seed, truth, steps, kind);
  }
  return verdict;
}

// Returns whether some run loses an update or its order. With a wrong
// plan some run does.
bool Loses(const Platform& truth, std::span<const replication::Step> steps,
           UpdateKind kind) {
  for (uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    const Verdict verdict = Run(seed, truth, steps, kind);
    if (verdict.losses + verdict.disorders > 0) return true;
  }
  return false;
}

std::string NameOfRow(const replication::TableRow& row) {
  std::string name;
  for (const char c : replication::CellOf(row)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
  }
  return name;
}

class UpdateRowTest : public ::testing::TestWithParam<replication::TableRow> {};
INSTANTIATE_TEST_SUITE_P(Rows, UpdateRowTest,
                         ::testing::ValuesIn(replication::RowsOfTable()),
                         [](const auto& info) {
                           return NameOfRow(info.param);
                         });

// On the platform of the table; and as it is planned for other transports, and
// for an adapter without atomic WRITE, on those.
TEST_P(UpdateRowTest, PersistedUpdatesOutliveACutInEveryState) {
  const replication::TableRow& row = GetParam();
  for (const Transport transport :
       {Transport::kInfiniBand, Transport::kIwarp, Transport::kTcp}) {
    for (const bool atomic_write : {true, false}) {
      Platform platform = replication::PlatformOfTable(row.configuration);
      platform.transport = transport;
      platform.atomic_write = atomic_write;
      const replication::TablePlan plan =
          replication::PlanOfTable(platform, row.kind, row.operation);
      SCOPED_TRACE(absl::StrCat(replication::PlatformToString(platform), ": ",
                                replication::StepsToString(plan.steps)));
      // InfiniBand, too, has all that iWARP's rows rest on.
      Platform truth = platform;
      if (transport == Transport::kIwarp) {
        truth.transport = Transport::kInfiniBand;
      }
      const Verdict verdict = RunSeeds(truth, plan.steps, row.kind);
      EXPECT_EQ(verdict.losses, 0u);
      EXPECT_EQ(verdict.disorders, 0u);
      EXPECT_GE(verdict.persisted, kSeeds * kUpdatesOfARun);
      EXPECT_GT(verdict.images, kSeeds * 20);
    }
  }
}

// The oracle is alive: steps that the model calls wrong on another platform
// lose there, and those that it calls enough do not.
TEST(UpdateRowsTest, WrongPlansLoseWhereTheModelSaysSo) {
  uint64_t enough = 0;
  uint64_t wrong = 0;
  for (const replication::TableRow& row : replication::RowsOfTable()) {
    for (size_t other = 0; other < replication::kConfigurationCount; ++other) {
      const Platform truth = replication::PlatformOfTable(other);
      const bool has_buffers =
          truth.receive_buffers == replication::ReceiveBuffers::kPmem ||
          !replication::NeedsMessagesApplied(row.steps);
      if (other == row.configuration || !has_buffers) continue;
      const model::RowResult model = model::ExploreRow(
          {.platform = truth,
           .applies_messages = replication::NeedsMessagesApplied(row.steps)},
          row.kind, row.steps);
      const std::string pair =
          absl::StrCat(replication::CellOf(row), " on ",
                       replication::PlatformToString(truth));
      if (model.verdict == model::RowVerdict::kOk) {
        ++enough;
        const Verdict verdict = RunSeeds(truth, row.steps, row.kind);
        EXPECT_EQ(verdict.losses + verdict.disorders, 0u) << pair;
      } else {
        ++wrong;
        EXPECT_TRUE(Loses(truth, row.steps, row.kind))
            << pair << ": " << model::RowVerdictName(model.verdict);
      }
    }
  }
  std::cout << "[   counts ] " << enough << " pairs enough, " << wrong
            << " wrong\n";
}

}  // namespace
}  // namespace alpheus::testing
