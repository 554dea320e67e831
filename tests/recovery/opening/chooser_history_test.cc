// SPDX-License-Identifier: Apache-2.0
// Small histories against the truth: which replica persisted which record,
// which records were acknowledged by W, where an installation was cut off, and
// one fault; then every quorum recovers, and what it chooses must hold every
// durable record (P-C1, P-C2, P-C4, P-C6), drop nothing without its nacks
// (P-INV-2, P-INV-9), and be reached if the replicas are there (P-C8).
// Installing follows the repair plan, which is thereby held against the truth
// too (P-H12).
//
// Method: depth first over all histories of four ballots and the recovery
// behind them (one ballot with N = 5); states that differ only in the names of
// nodes are one.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>
#include <unordered_set>
#include <vector>

#include "log/base/random.h"
#include "recovery/opening/chooser.h"
#include "recovery/opening/repair_plan.h"
#include "tests/support/oracles/naive_chooser.h"
#include "tests/support/oracles/state_report_world.h"

namespace alpheus::recovery {

using quorum::QuorumSizes;

namespace {

using testing::ReportsOf;
using testing::Shortened;
using testing::naive::OwnerOf;
using testing::naive::Reply;

using Table = std::vector<std::pair<int, int>>;

constexpr int kNothing = 0;
constexpr int kDamaged = -1;
constexpr int kLsnsMax = 5;

struct Node {
  int log_epoch = 0;
  Table table;
  int promised = 0;
  int acked = 0;  // of the log epoch; the watermark is as far
  bool blank = false;
  bool suspect = false;
  bool repairing = false;
  int records[kLsnsMax] = {};  // epochs, of LSN 1 on

  bool Has(int lsn) const {
    const int record = records[lsn - 1];
    return record > 0 && record == OwnerOf(table, lsn);
  }
  auto operator<=>(const Node&) const = default;
};

struct World {
  std::vector<Node> nodes;
  std::vector<int> durable;  // epochs of the records that must never go
  bool faulty = false;       // has had its one fault
};

std::string KeyOf(World world, int ballot) {
  std::sort(world.nodes.begin(), world.nodes.end());
  std::string key;
  const auto add = [&key](int value) { key += static_cast<char>(value + 2); };
  add(ballot);
  add(world.faulty);
  for (const int epoch : world.durable) add(epoch);
  for (const Node& node : world.nodes) {
    add(100);
    add(node.log_epoch);
    add(node.promised);
    add(node.acked);
    add(node.blank + 2 * node.suspect + 4 * node.repairing);
    for (const int record : node.records) add(record);
    for (const auto& [epoch, start] : node.table) {
      add(epoch);
      add(start);
    }
  }
  return key;
}

Reply ReplyOfNode(const Node& node, int index) {
  Reply reply;
  reply.node = index + 1;
  reply.log_epoch = node.log_epoch;
  reply.table = node.table;
  reply.blank = node.blank;
  reply.suspect = node.suspect;
  reply.repairing = node.repairing;
  for (int lsn = 1; lsn <= kLsnsMax; ++lsn) {
    char verdict = node.records[lsn - 1] == kNothing ? 'a' : 't';
    if (lsn <= node.acked) verdict = 'c';
    if (node.Has(lsn)) verdict = 'h';
    reply.cells.push_back({verdict, verdict == 'h' ? node.records[lsn - 1] : 0,
                           /*variant=*/0});
  }
  while (!reply.cells.empty() && reply.cells.back().verdict == 'a') {
    reply.cells.pop_back();
  }
  return reply;
}

class ChooserHistoryTest : public ::testing::TestWithParam<QuorumSizes> {
 protected:
  const QuorumSizes sizes_ = GetParam();
  // Ballots whose installations are tried; one more recovers.
  const int ballots_ = sizes_.replica_count <= 3 ? 4 : 1;

  // Every fault that a world may have once, and none.
  template <class Visit>
  void WithFaults(const World& world, const Visit& visit) {
    visit(world);
    if (world.faulty) return;
    World faulty = world;
    faulty.faulty = true;
    for (size_t i = 0; i < world.nodes.size(); ++i) {
      Node& node = faulty.nodes[i];
      for (int lsn = 1; lsn <= kLsnsMax; ++lsn) {
        if (!node.Has(lsn)) continue;
        // Above the watermark this is a torn record, else a corrupt one.
        node.records[lsn - 1] = kDamaged;
        visit(faulty);
        node = world.nodes[i];
      }
      node = Node{};
      node.blank = true;
      visit(faulty);
      node = world.nodes[i];
      if (node.log_epoch == 0) continue;
      node.suspect = true;
      std::fill(std::begin(node.records), std::end(node.records), kNothing);
      visit(faulty);
      node = world.nodes[i];
    }
  }

  // Checks a choice against what really happened.
  void CheckChoice(const World& world, const std::vector<int>& asked,
                   const Decision& decision) {
    const auto kept = KeptEpochs(decision);
    ASSERT_GE(kept.size(), world.durable.size()) << "P-C1, P-C6";
    ASSERT_TRUE(
        std::equal(world.durable.begin(), world.durable.end(), kept.begin()))
        << "P-C1, P-C4";
    ASSERT_EQ(kept.size(), decision.end.lsn - decision.head.lsn) << "P-C2";
    ASSERT_GE(static_cast<uint32_t>(std::popcount(decision.nacks)),
              quorum::NackQuorum(sizes_))
        << "P-INV-2";
    for (size_t i = 0; i < asked.size(); ++i) {
      if (!Contains(decision.nacks, i)) continue;
      const Node& node = world.nodes[asked[i]];
      ASSERT_FALSE(node.blank) << "P-INV-16";
      ASSERT_FALSE(node.suspect) << "P-INV-25";
      const int dropped = static_cast<int>(kept.size()) + 1;
      if (node.log_epoch == static_cast<int>(decision.epoch.value)) {
        ASSERT_LT(node.acked, dropped) << "P-INV-9, P-INV-10";
        ASSERT_FALSE(node.repairing) << "P-INV-12";
      }
    }
    for (const KeptRun& run : decision.kept) {
      for (size_t i = 0; i < asked.size(); ++i) {
        if (!Contains(run.holders, i)) continue;
        for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
          ASSERT_EQ(world.nodes[asked[i]].records[lsn.value - 1],
                    static_cast<int>(run.epoch.value))
              << "holders hold";
        }
      }
    }
  }

  static std::vector<int> KeptEpochs(const Decision& decision) {
    std::vector<int> epochs;
    for (const KeptRun& run : decision.kept) {
      epochs.insert(epochs.end(), run.end - run.first,
                    static_cast<int>(run.epoch.value));
    }
    return epochs;
  }

  // P-C8: what must be chosen. A repair that was cut off may need the replica
  // that it copied from; one fault is made up for where W - 1 others hold.
  bool MustChoose(const World& world, const std::vector<int>& asked) const {
    const auto enough =
        static_cast<size_t>(std::max(sizes_.read_quorum, sizes_.write_quorum));
    const bool repairing =
        std::any_of(world.nodes.begin(), world.nodes.end(),
                    [](const Node& node) { return node.repairing; });
    const bool all = asked.size() == world.nodes.size();
    if (world.faulty) return all && !repairing && sizes_.write_quorum > 1;
    return all || (!repairing && asked.size() >= enough);
  }

  void Recover(const World& world, int ballot) {
    for (uint32_t quorum = 1; quorum < 1u << world.nodes.size(); ++quorum) {
      std::vector<int> asked;
      std::vector<Reply> replies;
      for (int i = 0; i < static_cast<int>(sizes_.replica_count); ++i) {
        if ((quorum >> i & 1) == 0) continue;
        asked.push_back(i);
        replies.push_back(ReplyOfNode(world.nodes[i], i));
      }
      std::vector<StateReport> reports = ReportsOf(replies, sizes_);
      for (size_t i = 0; i < asked.size(); ++i) {
        const int promised = world.nodes[asked[i]].promised;
        reports[i].promised_before = Epoch(static_cast<uint64_t>(promised));
        // STR4 (state_report.h): one in two says of any first records no more
        // than that it has them.
        if (places_.Below(2) == 0) {
          reports[i] = Shortened(reports[i], places_.Below(kLsnsMax + 1));
        }
      }
      const auto decision = Choose(sizes_, reports);
      ++recoveries_;
      const bool chosen =
          decision.ok() && decision->outcome == Outcome::kChosen;
      ASSERT_TRUE(chosen || !MustChoose(world, asked))
          << "P-C8: " << decision.status() << testing::Describe(replies);
      if (!chosen) continue;
      ++chosen_;
      CheckChoice(world, asked, *decision);
      if (HasFatalFailure()) {
        ADD_FAILURE() << "ballot " << ballot << ": "
                      << testing::Describe(replies);
        return;
      }
      if (ballot > ballots_) continue;
      InstallAll(world, ballot, asked, reports, *decision);
      if (HasFatalFailure()) return;
    }
  }

  // Installs on every subset of those that promised; the others are left
  // alone, or in the middle of it.
  void InstallAll(const World& world, int ballot, const std::vector<int>& asked,
                  const std::vector<StateReport>& reports,
                  const Decision& decision) {
    const RepairPlan plan =
        PlanRepair(sizes_, decision, reports,
                   {Uuid{7, 7}, Epoch(ballot), static_cast<uint64_t>(ballot),
                    decision.configuration});
    const size_t count = plan.repairs.size();
    for (uint32_t installed = 0; installed < 1u << count; ++installed) {
      for (const bool half : {false, true}) {
        if (half && installed + 1 == 1u << count) continue;
        World next = world;
        for (const int i : asked) next.nodes[i].promised = ballot;
        const bool enough = static_cast<uint32_t>(std::popcount(installed)) >=
                            sizes_.write_quorum;
        for (size_t i = 0; i < count; ++i) {
          const ReplicaRepair& repair = plan.repairs[i];
          Node& node = next.nodes[asked[repair.report]];
          const bool whole = (installed >> i & 1) != 0;
          if (!whole && (!half || (repair.after_write_quorum && !enough))) {
            continue;
          }
          Copy(repair, decision, whole, &node);
          if (HasFatalFailure()) return;
          if (whole) Install(ballot, plan.table, decision, &node);
        }
        if (enough) {
          next.durable = KeptEpochs(decision);
          WriteAll(next, ballot, static_cast<int>(decision.end.lsn.value), 0);
        } else {
          Next(next, ballot + 1);
        }
        if (HasFatalFailure()) return;
      }
    }
  }

  // RPL1 (repair_plan.h): `repairing` exactly if a valid record is overwritten
  // by another one.
  static void Copy(const ReplicaRepair& repair, const Decision& decision,
                   bool whole, Node* node) {
    const std::vector<int> kept = KeptEpochs(decision);
    bool overwrites = false;
    for (const CopyRun& copy : repair.copies) {
      for (Lsn lsn = copy.first; lsn < copy.end; lsn = lsn + 1) {
        int& record = node->records[lsn.value - 1];
        const int epoch = kept[lsn.value - 1];
        overwrites |= node->Has(static_cast<int>(lsn.value)) && record != epoch;
        record = whole || !repair.destructive ? epoch : kDamaged;
      }
    }
    if (!node->suspect && !node->repairing) {
      ASSERT_EQ(repair.set_repairing, overwrites) << "RPL1 (repair_plan.h)";
    }
    node->repairing |= repair.set_repairing;
  }

  static void Install(int ballot, const EpochTable& table,
                      const Decision& decision, Node* node) {
    const std::vector<int> kept = KeptEpochs(decision);
    ASSERT_TRUE(std::equal(kept.begin(), kept.end(), node->records))
        << "P-INV-3: the copies make the log whole";
    node->table.clear();
    for (const EpochEntry& entry : table.entries()) {
      node->table.emplace_back(static_cast<int>(entry.epoch.value),
                               static_cast<int>(entry.start_lsn.value));
    }
    node->log_epoch = ballot;
    node->acked = static_cast<int>(kept.size());
    node->suspect = false;
    node->repairing = false;
  }

  // Each installed replica persists any of the records that the epoch writes,
  // and acknowledges what is unbroken.
  void WriteAll(const World& world, int epoch, int start, size_t index) {
    const int count = epoch == 1 ? 2 : 1;
    if (index == world.nodes.size()) {
      World next = world;
      std::vector<int> acked;
      for (const Node& node : world.nodes) {
        acked.push_back(node.log_epoch == epoch ? node.acked : 0);
      }
      std::sort(acked.rbegin(), acked.rend());
      next.durable.resize(std::max<size_t>(world.durable.size(),
                                           acked[sizes_.write_quorum - 1]),
                          epoch);
      Next(next, epoch + 1);
      return;
    }
    for (int mask = 0; mask < 1 << count; ++mask) {
      World next = world;
      Node& node = next.nodes[index];
      if (node.log_epoch == epoch) {
        for (int i = 0; i < count; ++i) {
          if ((mask >> i & 1) != 0) node.records[start + i - 1] = epoch;
        }
        while (node.acked < kLsnsMax && node.Has(node.acked + 1)) ++node.acked;
      } else if (mask != 0) {
        return;
      }
      WriteAll(next, epoch, start, index + 1);
      if (HasFatalFailure()) return;
    }
  }

  void Next(const World& world, int ballot) {
    if (!seen_.insert(KeyOf(world, ballot)).second) return;
    WithFaults(world, [&](const World& faulty) {
      if (!HasFatalFailure()) Recover(faulty, ballot);
    });
  }

  std::unordered_set<std::string> seen_;
  long long recoveries_ = 0;
  long long chosen_ = 0;
  Random places_{1};
};

TEST_P(ChooserHistoryTest, NoRecoveryLosesOrInventsARecord) {
  World world;
  world.nodes.resize(sizes_.replica_count);
  Next(world, 1);
  std::printf(
      "[   counts ] N %d W %d: %zu worlds, %lld recoveries, %lld "
      "chosen\n",
      sizes_.replica_count, sizes_.write_quorum, seen_.size(), recoveries_,
      chosen_);
  EXPECT_GT(chosen_, 0);
  EXPECT_GT(recoveries_, chosen_);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, ChooserHistoryTest,
    ::testing::Values(QuorumSizes{1, 1, 1}, QuorumSizes{2, 1, 2},
                      QuorumSizes{2, 2, 1}, QuorumSizes{3, 1, 3},
                      QuorumSizes{3, 2, 2}, QuorumSizes{3, 3, 1},
                      QuorumSizes{5, 2, 4}, QuorumSizes{5, 3, 3},
                      QuorumSizes{5, 4, 2}),
    [](const auto& param) {
      return "N" + std::to_string(param.param.replica_count) + "W" +
             std::to_string(param.param.write_quorum);
    });

}  // namespace
}  // namespace alpheus::recovery
