// SPDX-License-Identifier: Apache-2.0
// The chooser beside a second one, written from the protocol's text alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "recovery/opening/chooser.h"
#include "tests/support/oracles/naive_chooser.h"
#include "tests/support/oracles/state_report_world.h"

namespace alpheus::recovery {
namespace {

using testing::ChoiceOf;
using testing::Describe;
using testing::ReplyOf;
using testing::ReportsOf;
using testing::Shortened;
using testing::SizesOf;
using testing::naive::Choice;
using testing::naive::Reply;

using Table = std::vector<std::pair<int, int>>;

class WorldTest : public ::testing::Test {
 protected:
  // Compares both choosers.
  void Check(const quorum::QuorumSizes& sizes,
             const std::vector<Reply>& replies) {
    ++worlds_;
    const Choice expected = testing::naive::Choose(
        sizes.replica_count, sizes.write_quorum, sizes.read_quorum, replies);
    const std::vector<StateReport> reports = ReportsOf(replies, sizes);
    const Choice seen = CheckReports(sizes, replies, expected, reports);
    ++outcomes_[seen.outcome == 'c' ? 0 : seen.outcome == 'w' ? 1 : 2];
    ASSERT_FALSE(failed_);
    if (HasVariants(replies)) return;
    // STR4 (state_report.h): whatever the replicas leave out that they have.
    std::vector<StateReport> shortened = reports;
    for (StateReport& report : shortened) {
      report = Shortened(report, places_.Below(8));
    }
    CheckReports(sizes, replies, expected, shortened);
    ASSERT_FALSE(failed_);
  }

  Choice CheckReports(const quorum::QuorumSizes& sizes,
                      const std::vector<Reply>& replies, const Choice& expected,
                      const std::vector<StateReport>& reports) {
    const auto decision = Choose(sizes, reports);
    Choice seen = ChoiceOf(decision, reports);
    bool same = seen.outcome == expected.outcome;
    if (same && seen.outcome == 'c') {
      same = seen.head == expected.head && seen.end == expected.end &&
             seen.holders == expected.holders &&
             seen.epochs == expected.epochs && seen.nacks == expected.nacks;
    }
    std::string places;
    for (const StateReport& report : reports) {
      places += " " + std::to_string(report.start().lsn.value);
    }
    EXPECT_TRUE(same) << "N " << sizes.replica_count << " W "
                      << sizes.write_quorum << " " << Describe(replies)
                      << "\n places" << places << "\n seen " << Describe(seen)
                      << "\n expected " << Describe(expected) << "\n"
                      << decision.status();
    failed_ |= !same;
    return seen;
  }

  // Two records of one identity: which of them a replica has, a place does not
  // say.
  static bool HasVariants(const std::vector<Reply>& replies) {
    return std::ranges::any_of(replies, [](const Reply& reply) {
      return std::ranges::any_of(
          reply.cells, [](const auto& cell) { return cell.variant != 0; });
    });
  }

  void Print(const char* name) const {
    std::printf(
        "[   counts ] %s: %lld worlds, %lld chosen, %lld wait, "
        "%lld errors\n",
        name, worlds_, outcomes_[0], outcomes_[1], outcomes_[2]);
    EXPECT_GT(outcomes_[0], 0);
    EXPECT_GT(outcomes_[1], 0);
    EXPECT_GT(outcomes_[2], 0);
  }

  long long worlds_ = 0;
  long long outcomes_[3] = {};
  bool failed_ = false;
  Random places_{1};
};

// Tables of epochs 0 to `epochs`: each opens on the log of an earlier one.
std::vector<std::vector<Table>> AllTables(int epochs, int positions) {
  std::vector<std::vector<Table>> all = {{Table{}}};
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::vector<std::vector<Table>> next;
    for (const std::vector<Table>& tables : all) {
      std::set<Table> choices;
      for (const Table& parent : tables) {
        for (int start = 1; start <= (epoch == 1 ? 1 : positions + 1);
             ++start) {
          Table table;
          for (const auto& entry : parent) {
            if (entry.second < start) table.push_back(entry);
          }
          table.emplace_back(epoch, start);
          choices.insert(table);
        }
      }
      for (const Table& table : choices) {
        next.push_back(tables);
        next.back().push_back(table);
      }
    }
    all = std::move(next);
  }
  return all;
}

// Every reply that a replica with one of these tables can give.
std::vector<Reply> AllReplies(const std::vector<Table>& tables, int positions,
                              bool flags) {
  std::vector<Reply> all;
  for (size_t epoch = 0; epoch < tables.size(); ++epoch) {
    int words = 1;
    for (int i = 0; i < positions; ++i) words *= 5;
    for (int word = 0; word < words; ++word) {
      std::string verdicts;
      bool possible = true;
      for (int i = 0, rest = word; i < positions; ++i, rest /= 5) {
        verdicts += "htacu"[rest % 5];
        if (rest % 5 == 0 && testing::naive::OwnerOf(tables[epoch], i + 1) == 0)
          possible = false;
      }
      if (!possible) continue;
      all.push_back(
          ReplyOf(0, static_cast<int>(epoch), tables[epoch], verdicts));
    }
    for (int flag = 0; flags && flag < 3; ++flag) {
      Reply reply = ReplyOf(0, static_cast<int>(epoch), tables[epoch], "");
      reply.blank = flag == 0;
      reply.suspect = flag == 1;
      reply.repairing = flag == 2;
      // A replica is blank until its superline names an epoch (P-A5).
      if (!reply.blank || epoch == 0) all.push_back(reply);
    }
  }
  return all;
}

// All reports of up to `replicas` of them; the order of replicas means nothing.
template <class Visit>
void ForEachReplies(const std::vector<Reply>& all, int replicas, size_t from,
                    std::vector<Reply>* replies, const Visit& visit) {
  visit(*replies);
  if (static_cast<int>(replies->size()) == replicas) return;
  for (size_t i = from; i < all.size(); ++i) {
    replies->push_back(all[i]);
    replies->back().node = static_cast<int>(replies->size());
    ForEachReplies(all, replicas, i, replies, visit);
    replies->pop_back();
  }
}

// All W, every report and flag: one or two LSNs of two epochs and one LSN of
// three with up to 3 replicas; three LSNs and three epochs with up to 2.
TEST_F(WorldTest, EverySmallWorldIsChosenAsTheProtocolSays) {
  struct Size {
    int epochs, positions, replicas;
  };
  for (const Size size : {Size{2, 1, 3}, Size{2, 2, 3}, Size{3, 1, 3},
                          Size{2, 3, 2}, Size{3, 2, 2}}) {
    for (const std::vector<Table>& tables :
         AllTables(size.epochs, size.positions)) {
      const std::vector<Reply> all =
          AllReplies(tables, size.positions, /*flags=*/true);
      for (int n = 1; n <= size.replicas; ++n) {
        std::vector<Reply> replies;
        ForEachReplies(all, n, 0, &replies, [&](const auto& some) {
          for (int w = 1; w <= n && !HasFatalFailure(); ++w) {
            Check(SizesOf(n, w), some);
          }
        });
        if (HasFatalFailure()) return;
      }
    }
  }
  Print("N <= 3");
}

// Three positions, three epochs, heads, N up to 5: a seeded sample.
TEST_F(WorldTest, RandomWorldsAreChosenAsTheProtocolSays) {
  const char* const given = std::getenv("ALPHEUS_SEED");
  const uint64_t seed =
      given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  std::printf("ALPHEUS_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  const auto below = [&random](size_t n) {
    return static_cast<size_t>(random.Next() % n);
  };
  const auto all_tables = AllTables(3, 3);
  for (int round = 0; round < 400; ++round) {
    const std::vector<Table>& tables = all_tables[below(all_tables.size())];
    const std::vector<Reply> all = AllReplies(tables, 3, /*flags=*/true);
    for (int world = 0; world < 1000; ++world) {
      const int n = static_cast<int>(1 + below(5));
      const int w = static_cast<int>(1 + below(n));
      std::vector<Reply> replies;
      for (int node = 1; node <= n; ++node) {
        if (below(4) == 0) continue;
        replies.push_back(all[below(all.size())]);
        replies.back().node = node;
        if (below(8) == 0 && !replies.back().table.empty() &&
            tables.back().back().second > 1) {
          // Only what all histories share was ever cleaned.
          bool shared = true;
          for (const Table& table : tables) {
            shared &= table.empty() || testing::naive::OwnerOf(table, 1) == 1;
          }
          if (shared) replies.back().head = 2;
        }
        if (below(32) == 0 && replies.back().cells.size() == 3) {
          replies.back().cells[below(3)].variant = 1;
        }
      }
      Check(SizesOf(n, w), replies);
      if (HasFatalFailure()) return;
    }
  }
  Print("N <= 5, random");
}

}  // namespace
}  // namespace alpheus::recovery
