// SPDX-License-Identifier: Apache-2.0
// Is the oracle of the kill tests alive? Each way to break a log must be found
// under its own name, and a right one must pass.
#include "tools/nemesis/oracles/recovery_oracle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/nemesis/oracles/log_history.h"

namespace alpheus::demo {
namespace {

const Feed& TestFeed() {
  static const Feed feed = Feed::FromText("alpha\nbeta\n\ngamma\n");
  return feed;
}

RecoveredRecord Recover(uint64_t lsn, uint64_t number) {
  return {lsn, TestFeed().Record(number)};
}

// Two threads. Records 0 and 1 are survivors of LSN 1 and 2; 10 to 14 were
// fed, 10 to 12 acknowledged, 13 was in flight and is there.
KillFacts MakeRightFacts() {
  KillFacts facts;
  facts.threads = 2;
  facts.survivors = {{1, 0}, {2, 1}};
  facts.first_number = 10;
  facts.fed_count = 5;
  facts.acknowledgements = {{{3, 10}, 0}, {{4, 11}, 1}, {{5, 12}, 0}};
  facts.recovered = {Recover(1, 0),  Recover(2, 1),  Recover(3, 10),
                     Recover(4, 11), Recover(5, 12), Recover(6, 13)};
  return facts;
}

TEST(RecoveryOracleTest, RightLogPasses) {
  const Judgement judgement = JudgeRecovery(TestFeed(), MakeRightFacts());
  EXPECT_TRUE(judgement.holds());
  EXPECT_TRUE(judgement.violations.empty());
  EXPECT_EQ(judgement.recovered_count, 4u);
  EXPECT_EQ(judgement.unacknowledged_count, 1u);
  EXPECT_EQ(judgement.survivors.size(), 6u);
}

TEST(RecoveryOracleTest, EmptyLogPasses) {
  EXPECT_TRUE(JudgeRecovery(TestFeed(), KillFacts()).holds());
}

struct BrokenCase {
  std::string name;
  std::function<void(KillFacts*)> damage;
  uint64_t Judgement::* count;  // that must not be 0
};

std::vector<BrokenCase> BrokenCases() {
  using Facts = KillFacts*;
  return {
      {"acknowledged record missing at the end",
       [](Facts f) { f->recovered.resize(4); }, &Judgement::lost_count},
      {"acknowledged record missing in the middle",
       [](Facts f) { f->recovered.erase(f->recovered.begin() + 3); },
       &Judgement::lost_count},
      {"survivor missing",
       [](Facts f) { f->recovered.erase(f->recovered.begin()); },
       &Judgement::lost_count},
      {"everything missing", [](Facts f) { f->recovered.clear(); },
       &Judgement::lost_count},
      {"record there twice",
       [](Facts f) { f->recovered.push_back(Recover(7, 12)); },
       &Judgement::duplicated_count},
      {"survivor there twice",
       [](Facts f) { f->recovered.push_back(Recover(7, 0)); },
       &Judgement::duplicated_count},
      {"text of no record",
       [](Facts f) { f->recovered.push_back({7, "nonsense"}); },
       &Judgement::invented_count},
      {"one byte changed", [](Facts f) { f->recovered[2].payload.back() ^= 1; },
       &Judgement::invented_count},
      {"record cut short", [](Facts f) { f->recovered[2].payload.pop_back(); },
       &Judgement::invented_count},
      {"record never fed",
       [](Facts f) { f->recovered.push_back(Recover(7, 15)); },
       &Judgement::invented_count},
      {"cleaned record came back",
       [](Facts f) {
         f->recovered.insert(f->recovered.begin(), Recover(0, 5));
       },
       &Judgement::invented_count},
      {"record under another LSN than acknowledged",
       [](Facts f) { f->acknowledgements[2].record.lsn = 9; },
       &Judgement::out_of_order_count},
      {"survivor under another LSN", [](Facts f) { f->survivors[1].lsn = 7; },
       &Judgement::out_of_order_count},
      {"gap in the LSNs", [](Facts f) { f->recovered[5].lsn = 7; },
       &Judgement::out_of_order_count},
      {"records of one thread swapped",
       [](Facts f) {
         std::swap(f->recovered[2].payload, f->recovered[4].payload);
       },
       &Judgement::out_of_order_count},
      {"two records of one thread without acknowledgement",
       [](Facts f) { f->acknowledgements.erase(f->acknowledgements.begin()); },
       &Judgement::out_of_order_count},
      {"acknowledged by another thread",
       [](Facts f) { f->acknowledgements[0].thread = 1; },
       &Judgement::out_of_order_count},
  };
}

TEST(RecoveryOracleTest, EachKindOfDamageIsFoundUnderItsName) {
  for (const BrokenCase& broken : BrokenCases()) {
    KillFacts facts = MakeRightFacts();
    broken.damage(&facts);
    const Judgement judgement = JudgeRecovery(TestFeed(), facts);
    EXPECT_FALSE(judgement.holds()) << broken.name;
    EXPECT_GT(judgement.*broken.count, 0u) << broken.name;
    EXPECT_FALSE(judgement.violations.empty()) << broken.name;
  }
}

// Writer A (two threads) was paused with records 10 to 12 acknowledged and 13
// in flight, which recovery kept. B (one thread) then appended 30 and 31, of
// which 31 was not acknowledged. A goes on and hears that 13 was durable.
HistoryFacts MakeRightHistory() {
  HistoryFacts facts;
  facts.survivors = {{1, 0}};
  WriterFacts a;
  a.threads = 2;
  a.first_number = 10;
  a.fed_count = 8;
  a.lsn_floor = 1;
  a.acknowledgements = {{{2, 10}, 0}, {{3, 11}, 1}, {{4, 12}, 0}, {{5, 13}, 1}};
  WriterFacts b;
  b.first_number = 30;
  b.fed_count = 4;
  b.lsn_floor = 4;
  b.acknowledgements = {{{6, 30}, 0}};
  facts.writers = {a, b};
  facts.recovered = {Recover(1, 0),  Recover(2, 10), Recover(3, 11),
                     Recover(4, 12), Recover(5, 13), Recover(6, 30),
                     Recover(7, 31)};
  return facts;
}

TEST(RecoveryOracleTest, RightLogOfSeveralWritersPasses) {
  const Judgement judgement = JudgeHistory(TestFeed(), MakeRightHistory());
  EXPECT_TRUE(judgement.holds());
  EXPECT_TRUE(judgement.violations.empty());
  EXPECT_EQ(judgement.recovered_count, 6u);
  EXPECT_EQ(judgement.unacknowledged_count, 1u);
}

// A term of a writer with two threads begins where its last one ended, in the
// middle of what its threads take in turn; record 13 was left out between.
HistoryFacts MakeTwoTerms() {
  HistoryFacts facts;
  WriterFacts first;
  first.threads = 2;
  first.first_number = 10;
  first.fed_count = 5;
  first.acknowledgements = {{{1, 10}, 0}, {{2, 11}, 1}, {{3, 12}, 0}};
  WriterFacts second = first;
  second.first_number = 15;
  second.first_index = 5;
  second.lsn_floor = 3;
  second.acknowledgements = {{{5, 15}, 1}, {{6, 16}, 0}, {{7, 17}, 1}};
  WriterFacts other;
  other.first_number = 30;
  other.fed_count = 1;
  other.acknowledgements = {{{4, 30}, 0}};
  facts.writers = {first, second, other};
  facts.recovered = {Recover(1, 10), Recover(2, 11), Recover(3, 12),
                     Recover(4, 30), Recover(5, 15), Recover(6, 16),
                     Recover(7, 17)};
  for (size_t i = 0; i < facts.recovered.size(); ++i) {
    facts.recovered[i].epoch = i < 3 ? 1 : i < 4 ? 2 : 3;
  }
  return facts;
}

TEST(RecoveryOracleTest, TermsOfAWriterPass) {
  const Judgement judgement = JudgeHistory(TestFeed(), MakeTwoTerms());
  EXPECT_TRUE(judgement.holds()) << judgement.violations.front();
}

TEST(RecoveryOracleTest, TwoPrimariesOfAnEpochAreFound) {
  HistoryFacts facts = MakeTwoTerms();
  facts.recovered[3].epoch = 3;
  const Judgement judgement = JudgeHistory(TestFeed(), facts);
  EXPECT_EQ(judgement.out_of_order_count, 3u);
  ASSERT_FALSE(judgement.violations.empty());
  EXPECT_EQ(judgement.violations[0].substr(0, 4), "RO7:");
}

TEST(RecoveryOracleTest, EpochsThatFallAreFound) {
  HistoryFacts facts = MakeTwoTerms();
  facts.recovered[3].epoch = 4;
  EXPECT_EQ(JudgeHistory(TestFeed(), facts).out_of_order_count, 3u);
}

// By its own records alone they would be another thread's.
TEST(RecoveryOracleTest, ThreadsOfATermGoByTheWholeInput) {
  HistoryFacts facts = MakeTwoTerms();
  facts.writers[1].first_index = 0;
  EXPECT_GT(JudgeHistory(TestFeed(), facts).out_of_order_count, 0u);
}

struct BrokenHistory {
  std::string name;
  std::function<void(HistoryFacts*)> damage;
  uint64_t Judgement::* count;  // that must not be 0
};

std::vector<BrokenHistory> BrokenHistories() {
  using Facts = HistoryFacts*;
  return {
      {"the paused writer hears of a record that is lost",
       [](Facts f) { f->writers[0].acknowledgements.push_back({{6, 14}, 0}); },
       &Judgement::lost_count},
      {"record of the paused writer lost",
       [](Facts f) { f->recovered.erase(f->recovered.begin() + 4); },
       &Judgement::lost_count},
      {"record of the second writer lost",
       [](Facts f) { f->recovered.resize(5); }, &Judgement::lost_count},
      {"record in the wrong writer's range",
       [](Facts f) { f->recovered.push_back(Recover(8, 18)); },
       &Judgement::invented_count},
      {"two records of the second writer without acknowledgement",
       [](Facts f) { f->recovered.push_back(Recover(8, 32)); },
       &Judgement::out_of_order_count},
      {"two records of a thread of the first writer without acknowledgement",
       [](Facts f) {
         f->writers[0].acknowledgements.resize(2);
         f->recovered.resize(5);
         f->writers.pop_back();
         f->recovered.push_back(Recover(6, 14));
       },
       &Judgement::out_of_order_count},
      {"the second writer wrote in front of what was known",
       [](Facts f) { f->writers[1].lsn_floor = 6; },
       &Judgement::out_of_order_count},
      {"record of both writers twice",
       [](Facts f) { f->recovered.push_back(Recover(8, 12)); },
       &Judgement::duplicated_count},
  };
}

TEST(RecoveryOracleTest, EachKindOfDamageBySeveralWritersIsFound) {
  for (const BrokenHistory& broken : BrokenHistories()) {
    HistoryFacts facts = MakeRightHistory();
    broken.damage(&facts);
    const Judgement judgement = JudgeHistory(TestFeed(), facts);
    EXPECT_FALSE(judgement.holds()) << broken.name;
    EXPECT_GT(judgement.*broken.count, 0u) << broken.name;
  }
}

// Only the upper bound is unknown of writers that go on.
TEST(RecoveryOracleTest, LookBesideWritersKnowsNoUpperBoundButAllOthers) {
  HistoryFacts facts = MakeRightHistory();
  facts.goes_on = true;
  facts.writers[1].acknowledgements.clear();
  EXPECT_TRUE(JudgeHistory(TestFeed(), facts).holds());
  facts.recovered.resize(4);
  EXPECT_FALSE(JudgeHistory(TestFeed(), facts).holds());
}

TEST(LogHistoryTest, LaterLookMustNotShowLess) {
  LogHistory history(&TestFeed());
  const HistoryFacts facts = MakeRightHistory();
  HistoryFacts first = facts;
  EXPECT_FALSE(history.Check(first.writers, first.recovered, true).ok())
      << "record 0 was never fed";
  first.recovered.erase(first.recovered.begin());
  ASSERT_TRUE(history.Check(first.writers, first.recovered, true).ok());
  EXPECT_EQ(history.LsnFloor({}), 7u);
  EXPECT_GT(history.ring_bytes(), 0u);
  first.recovered.pop_back();  // never acknowledged, but it was seen
  EXPECT_FALSE(history.Check({}, first.recovered, true).ok());
  history.Clear();
  EXPECT_EQ(history.ring_bytes(), 0u);
  EXPECT_TRUE(history.Check({}, {}, true).ok());
}

TEST(LogHistoryTest, WritersGetNumbersOfTheirOwn) {
  LogHistory history(&TestFeed());
  EXPECT_EQ(history.DrawFirstNumber(), 0u);
  EXPECT_EQ(history.DrawFirstNumber(), LogHistory::kNumbersPerWriter);
}

TEST(FeedTest, RecordsTellTheirNumberAndRepeatTheLines) {
  EXPECT_EQ(TestFeed().Record(0), "0\talpha");
  EXPECT_EQ(TestFeed().Record(2), "2\t");
  EXPECT_EQ(TestFeed().Record(7), "7\tgamma");
  EXPECT_EQ(Feed::NumberOf("7\tgamma"), 7u);
  EXPECT_EQ(Feed::NumberOf("gamma"), std::nullopt);
}

TEST(FeedTest, LongLinesAreFedInPieces) {
  const Feed feed =
      Feed::FromText(std::string(2 * Feed::kLineBytesMax + 1, 'x'));
  EXPECT_EQ(feed.line_count(), 3u);
  EXPECT_EQ(feed.Record(2), "2\tx");
}

}  // namespace
}  // namespace alpheus::demo
