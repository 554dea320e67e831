// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/oracles/naive_chooser.h"
#include "tests/support/oracles/state_report_world.h"

namespace alpheus::recovery {

using quorum::QuorumSizes;

namespace {

using testing::ChoiceOf;
using testing::Describe;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kTwoOfThree;
using testing::ReplyOf;
using testing::ReportOf;
using testing::ReportsOf;
using testing::Shortened;
using testing::naive::Choice;
using testing::naive::Reply;

using Code = absl::StatusCode;

// The choice of the chooser.
Choice Chosen(const QuorumSizes& sizes, const std::vector<Reply>& replies) {
  const std::vector<StateReport> reports = ReportsOf(replies, sizes);
  return ChoiceOf(Choose(sizes, reports), reports);
}

absl::Status Refused(const QuorumSizes& sizes,
                     const std::vector<Reply>& replies) {
  return Choose(sizes, ReportsOf(replies, sizes)).status();
}

// Arcadia §4.2: X at LSN 1 on A, which crashes; B and C go on without it and
// write Y at LSN 1; then A and B are read. A's log is the longer one.
TEST(ChooserTest, DivergingHistoriesOfThePaper) {
  const Choice choice = Chosen(
      kTwoOfThree,
      {ReplyOf(1, 1, {{1, 1}}, "hhh"), ReplyOf(2, 2, {{1, 1}, {2, 1}}, "h")});
  EXPECT_EQ(choice.outcome, 'c');
  EXPECT_THAT(choice.epochs, ElementsAre(2));
  EXPECT_THAT(choice.holders, ElementsAre(std::set<int>{2}));
  EXPECT_THAT(choice.nacks, ElementsAre(1, 2));
}

// First counterexample of the search (P-H3): epoch 1 is durable on {1,2}; the
// next primary is promised epoch 2 by the lagging replica 3 and dies before it
// has installed it. Replica 3's log_epoch stays behind, so that it may not
// hide what replica 1 has.
TEST(ChooserTest, EpochBeforeRepairHidesNoDurableRecord) {
  std::vector<StateReport> reports = ReportsOf(
      {ReplyOf(1, 1, {{1, 1}}, "h"), ReplyOf(3, 0, {}, "")}, kTwoOfThree);
  reports[1].promised_before = Epoch(2);
  const auto decision = Choose(kTwoOfThree, reports);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->outcome, Outcome::kChosen);
  EXPECT_EQ(decision->epoch, Epoch(1));
  EXPECT_EQ(decision->end.lsn, Lsn(2));
}

// Second counterexample (P-H4): two aborted recoveries burn epochs 2 and 3 on
// replica 1; epoch 2' = 4 is then installed on {2,3} and makes a record
// durable; the next recovery reads {1,2} and must not believe the promises.
TEST(ChooserTest, PromiseConsumedByAnAbortedRecoveryRanksNothing) {
  std::vector<StateReport> reports = ReportsOf(
      {ReplyOf(1, 1, {{1, 1}}, "h"), ReplyOf(2, 4, {{1, 1}, {4, 1}}, "h")},
      kTwoOfThree);
  reports[0].promised_before = Epoch(7);
  const auto decision = Choose(kTwoOfThree, reports);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->epoch, Epoch(4));
  EXPECT_THAT(ChoiceOf(decision, reports).epochs, ElementsAre(4));
}

// P-H2, P-INV-2: W = 1 of 2; one nack leaves a replica that may hold the
// record.
TEST(ChooserTest, OneNackTooFewWaits) {
  constexpr QuorumSizes kOneOfTwo{2, 1, 2};
  EXPECT_EQ(Chosen(kOneOfTwo, {ReplyOf(1, 1, {{1, 1}}, "h")}).outcome, 'w');
  // Enough answers, one of which can't tell.
  constexpr QuorumSizes kTwoOfFour{4, 2, 3};
  EXPECT_EQ(Chosen(kTwoOfFour, {ReplyOf(1, 1, {{1, 1}}, "ha"),
                                ReplyOf(2, 1, {{1, 1}}, "ht"),
                                ReplyOf(3, 1, {{1, 1}}, "hc")})
                .outcome,
            'w');
  EXPECT_EQ(Chosen(kTwoOfFour, {ReplyOf(1, 1, {{1, 1}}, "ha"),
                                ReplyOf(2, 1, {{1, 1}}, "ht"),
                                ReplyOf(3, 1, {{1, 1}}, "h")})
                .outcome,
            'c');
}

// P-H8: persistence order is not LSN order; what one epoch wrote is put
// together.
TEST(ChooserTest, HolesOfOneEpochAreFilledFromEachOther) {
  const Choice choice = Chosen(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "hah"),
                                             ReplyOf(2, 1, {{1, 1}}, "hha")});
  EXPECT_EQ(choice.outcome, 'c');
  EXPECT_EQ(choice.end, 3);
  EXPECT_THAT(choice.holders, ElementsAre(std::set<int>{1, 2}, std::set<int>{2},
                                          std::set<int>{1}));
}

// CH3: the records that one replica names lead to the place of another.
TEST(ChooserTest, PlaceOfAnotherHistoryIsAnError) {
  const Reply reply = ReplyOf(1, 1, {{1, 1}}, "hhhh");
  Reply other = reply;
  other.node = 2;
  std::vector<StateReport> reports = ReportsOf({reply, other}, kTwoOfThree);
  reports[1] = Shortened(reports[1], 3);
  ASSERT_TRUE(reports[1].place.has_value());
  const auto chosen = Choose(kTwoOfThree, reports);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->chosen_from, *reports[1].place);
  EXPECT_EQ(chosen->end.lsn, Lsn(5));
  reports[1].place->chain ^= 1;
  const absl::Status refused = Choose(kTwoOfThree, reports).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("as another replica proves"));
}

// Returns the entries in one table.
EpochTable TableWith(const std::vector<EpochEntry>& entries) {
  EpochTable table = EpochTable::Empty(Uuid{7, 7});
  for (const EpochEntry& entry : entries) table = table.With(entry, Lsn(0));
  return table;
}

// Replica 1 is of epoch 4, which starts at LSN 8. Replica 2 is of epoch 3, and
// has an epoch 2 between two that replica 1 has without it, which no log has.
std::vector<StateReport> TablesThatAgreeAgain() {
  std::vector<StateReport> reports =
      ReportsOf({ReplyOf(1, 4, {{1, 1}, {3, 4}, {4, 8}}, "hhhhhhh"),
                 ReplyOf(2, 3, {{1, 1}, {3, 4}}, "hhhhh")},
                kTwoOfThree);
  reports[1] = Shortened(reports[1], 5);
  const std::vector<EpochEntry> entries = reports[1].table.entries();
  const EpochTable with_between =
      ReportOf(ReplyOf(2, 3, {{1, 1}, {2, 3}}, ""), kTwoOfThree).table;
  reports[1].table =
      TableWith({entries[0], with_between.entries()[1], entries[1]});
  return reports;
}

void ExpectPlacesDisagree(const std::vector<StateReport>& reports) {
  const absl::Status refused = Choose(kTwoOfThree, reports).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(refused.message(),
              HasSubstr("with these places and epoch tables"));
}

// CH5: replica 2 alone knows where its records end, and does not share them.
TEST(ChooserTest, PlaceThatNobodyKnowsIsAnError) {
  std::vector<StateReport> reports = TablesThatAgreeAgain();
  reports[0] = Shortened(reports[0], 6);
  ExpectPlacesDisagree(reports);
}

// CH5: replica 2 says that it has LSN 4, and does not name it.
TEST(ChooserTest, HolderThatDoesNotNameItsRecordIsAnError) {
  ExpectPlacesDisagree(TablesThatAgreeAgain());
}

// CH5: replica 2 shares LSN 2 of an epoch that it has not installed.
TEST(ChooserTest, PlaceInAnEpochThatIsNotInstalledIsAnError) {
  std::vector<StateReport> reports =
      ReportsOf({ReplyOf(1, 4, {{1, 1}, {4, 2}}, "h"),
                 ReplyOf(2, 3, {{1, 1}, {4, 2}}, "hhh")},
                kTwoOfThree);
  reports[1] = Shortened(reports[1], 2);
  ExpectPlacesDisagree(reports);
}

// CH5: the bytes before the last place are copied without being looked at.
TEST(ChooserTest, EpochThatStartsNowhereIsAnError) {
  // At the head; in the middle of a line; after the next place; and too early
  // for three records before it.
  for (const uint64_t offset :
       {uint64_t{0}, 3 * kLineBytes + 1, 6 * kLineBytes, 2 * kLineBytes}) {
    std::vector<StateReport> reports =
        ReportsOf({ReplyOf(1, 3, {{1, 1}, {3, 4}}, "hhhhhh"),
                   ReplyOf(2, 3, {{1, 1}, {3, 4}}, "hhhhhh")},
                  kTwoOfThree);
    for (StateReport& report : reports) {
      report = Shortened(report, 5);
      std::vector<EpochEntry> entries = report.table.entries();
      entries[1].start_offset = RingOffset(offset);
      report.table = TableWith(entries);
    }
    SCOPED_TRACE(offset);
    ExpectPlacesDisagree(reports);
  }
}

// P-H8, P-H13: replica 2 still has LSN 2 of epoch 1, which lost it to epoch 2.
// Replica 1, whose own copy is damaged, says so by its table.
TEST(ChooserTest, RecordOfAnEpochThatLostTheLsnIsNotMerged) {
  const Choice choice =
      Chosen(kTwoOfThree, {ReplyOf(1, 3, {{1, 1}, {2, 2}, {3, 3}}, "hc"),
                           ReplyOf(2, 1, {{1, 1}}, "hh")});
  EXPECT_EQ(choice.outcome, 'w') << Describe(choice);
  EXPECT_EQ(choice.end, 1);
}

// P-H9: k on {1,2}; 3 lags; 1 dies; 2's copy goes bad. Not a shorter log.
TEST(ChooserTest, CorruptRecordIsNoNack) {
  const Choice choice = Chosen(kTwoOfThree, {ReplyOf(2, 1, {{1, 1}}, "hc"),
                                             ReplyOf(3, 1, {{1, 1}}, "h")});
  EXPECT_EQ(choice.outcome, 'w');
  // The replica that has it repairs the other.
  EXPECT_EQ(Chosen(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "hh"),
                                 ReplyOf(2, 1, {{1, 1}}, "hc"),
                                 ReplyOf(3, 1, {{1, 1}}, "h")})
                .end,
            2);
}

// P-A8: a replica that was formatted with another size.
TEST(ChooserTest, RingOfAnotherCapacityIsRefused) {
  std::vector<StateReport> reports =
      ReportsOf({ReplyOf(1, 1, {{1, 1}}, "h"), ReplyOf(2, 1, {{1, 1}}, "h")},
                kTwoOfThree);
  reports[1].ring_capacity *= 2;
  const absl::Status refused = Choose(kTwoOfThree, reports).status();
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("has a ring of"));
}

// P-H10, P-INV-10.
TEST(ChooserTest, CorruptHeadRecordIsNoEmptyLog) {
  const absl::Status refused =
      Refused({1, 1, 1}, {ReplyOf(1, 1, {{1, 1}}, "c")});
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(refused.message(), HasSubstr("node 1"));
  EXPECT_THAT(refused.message(), HasSubstr("epoch 1, LSN 1"));
  EXPECT_EQ(Chosen({1, 1, 1}, {ReplyOf(1, 1, {{1, 1}}, "")}).outcome, 'c');
}

// P-H12, P-INV-12: but what the highest epoch owns it never acknowledged, if it
// did not install that epoch.
TEST(ChooserTest, RepairingReplicaHoldsAndNacksNothing) {
  Reply repairing = ReplyOf(2, 1, {{1, 1}}, "hh");
  repairing.repairing = true;
  EXPECT_EQ(
      Chosen(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "h"), repairing}).outcome,
      'w');
  repairing.cells.clear();
  EXPECT_EQ(
      Chosen(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "h"), repairing}).outcome,
      'w');
  const Reply later = ReplyOf(1, 2, {{1, 1}, {2, 2}}, "h");
  const Choice choice = Chosen(kTwoOfThree, {later, repairing});
  EXPECT_EQ(choice.outcome, 'c');
  EXPECT_THAT(choice.nacks, ElementsAre(1, 2));
}

// An opening that is cut off writes chosen records over others beyond the end.
TEST(ChooserTest, BrokenPlaceThatALaterEpochOwnsIsNacked) {
  const Reply broken = ReplyOf(2, 1, {{1, 1}}, "hc");
  const Reply owns_it = ReplyOf(1, 2, {{1, 1}, {2, 2}}, "h");
  const Choice choice = Chosen(kTwoOfThree, {owns_it, broken});
  EXPECT_EQ(choice.outcome, 'c');
  EXPECT_THAT(choice.nacks, ElementsAre(1, 2));
  // The replica may have acknowledged the broken record in its own epoch, and
  // also where the later epoch begins behind that record.
  const Reply same = ReplyOf(1, 1, {{1, 1}}, "h");
  EXPECT_EQ(Chosen(kTwoOfThree, {same, broken}).outcome, 'w');
  const Reply owns_later = ReplyOf(1, 2, {{1, 1}, {2, 3}}, "h");
  EXPECT_NE(Chosen(kTwoOfThree, {owns_later, broken}).outcome, 'c');
}

// P-H16, P-H25: neither nacks, nor does it count for R.
TEST(ChooserTest, BlankAndSuspectReplicasNackNothing) {
  Reply blank = ReplyOf(3, 0, {}, "");
  blank.blank = true;
  Reply suspect = ReplyOf(3, 1, {{1, 1}}, "");
  suspect.suspect = true;
  constexpr QuorumSizes kOneOfThree{3, 1, 3};
  constexpr QuorumSizes kTwoOfFour{4, 2, 3};
  for (const Reply& unknowing : {blank, suspect}) {
    EXPECT_EQ(
        Chosen(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "h"), unknowing}).outcome,
        'w');
    // R is met without it, the nacks are not.
    EXPECT_EQ(Chosen(kTwoOfFour, {ReplyOf(1, 1, {{1, 1}}, "hc"),
                                  ReplyOf(2, 1, {{1, 1}}, "h"), unknowing,
                                  ReplyOf(4, 1, {{1, 1}}, "h")})
                  .outcome,
              'e');
    EXPECT_EQ(Refused(kOneOfThree, {ReplyOf(1, 1, {{1, 1}}, "h"),
                                    ReplyOf(2, 1, {{1, 1}}, "h"), unknowing})
                  .code(),
              Code::kFailedPrecondition);
  }
}

// P-A5: once any report names the new incarnation, the earlier one is dropped.
TEST(ChooserTest, ReportOfALostIncarnationIsDropped) {
  std::vector<StateReport> reports =
      ReportsOf({ReplyOf(1, 1, {{1, 1}}, "h"), ReplyOf(2, 1, {{1, 1}}, "hh")},
                kTwoOfThree);
  reports[0].configuration.id = 2;
  reports[0].configuration.members[1].incarnation = 777;
  const auto decision = Choose(kTwoOfThree, reports);
  ASSERT_TRUE(decision.ok());
  EXPECT_EQ(decision->outcome, Outcome::kWait);
  EXPECT_EQ(decision->counts, 1u);
}

TEST(ChooserTest, EmptyReplicasOfANewLogCount) {
  const Choice choice =
      Chosen(kTwoOfThree, {ReplyOf(1, 0, {}, ""), ReplyOf(2, 0, {}, "")});
  EXPECT_EQ(choice.outcome, 'c');
  EXPECT_EQ(choice.end, 0);
}

TEST(ChooserTest, HighestHeadHolds) {
  Reply ahead = ReplyOf(2, 1, {{1, 1}}, "hhh");
  ahead.head = 3;
  const Choice choice =
      Chosen(kTwoOfThree, {ReplyOf(1, 1, {{1, 1}}, "cch"), ahead});
  EXPECT_EQ(choice.head, 3);
  EXPECT_EQ(choice.end, 3);
}

// P-H17: a blank replica that the configuration names reports once, too.
TEST(ChooserTest, CopyOfABlankReplicaIsRefused) {
  Reply blank = ReplyOf(2, 0, {}, "");
  blank.blank = true;
  std::vector<StateReport> reports =
      ReportsOf({ReplyOf(1, 1, {{1, 1}}, "h"), blank, blank}, kTwoOfThree);
  for (StateReport& report : reports) {
    if (!report.blank) continue;
    report.incarnation = report.configuration.members[1].incarnation;
  }
  EXPECT_EQ(Choose(kTwoOfThree, reports).status().code(),
            Code::kInvalidArgument);
}

// P-INV-17, P-INV-18, P-INV-8 and P-C5: answers that can't be of one log are
// errors.
TEST(ChooserTest, ContradictionsAreErrors) {
  const Reply one = ReplyOf(1, 1, {{1, 1}}, "h");
  const Reply two = ReplyOf(2, 1, {{1, 1}}, "h");
  EXPECT_EQ(Refused(kTwoOfThree, {one, one}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Refused({3, 2, 1}, {one, two}).code(), Code::kInvalidArgument);

  std::vector<StateReport> reports = ReportsOf({one, two}, kTwoOfThree);
  EXPECT_EQ(Choose({3, 3, 2}, reports).status().code(),
            Code::kFailedPrecondition);
  reports[1].records[0].header_checksum ^= 1;
  EXPECT_EQ(Choose(kTwoOfThree, reports).status().code(), Code::kDataLoss);

  EXPECT_EQ(Refused(kTwoOfThree, {ReplyOf(1, 2, {{1, 1}, {2, 2}}, "hh"),
                                  ReplyOf(2, 2, {{1, 1}, {2, 3}}, "hh")})
                .code(),
            Code::kDataLoss);
  EXPECT_EQ(Refused(kTwoOfThree, {ReplyOf(1, 3, {{2, 2}, {3, 3}}, "hh"),
                                  ReplyOf(2, 2, {{1, 1}, {2, 3}}, "hh")})
                .code(),
            Code::kDataLoss);

  reports = ReportsOf({ReplyOf(1, 2, {{1, 1}, {2, 2}}, "hh")}, {1, 1, 1});
  reports[0].records[0].header_checksum ^= 1;  // the chain at the start of 2
  EXPECT_EQ(Choose({1, 1, 1}, reports).status().code(), Code::kDataLoss);
  EXPECT_THAT(Choose({1, 1, 1}, reports).status().message(),
              HasSubstr("epoch 2, LSN 2"));

  reports = ReportsOf({one, two}, kTwoOfThree);
  reports[1].head.chain = 5;
  EXPECT_EQ(Choose(kTwoOfThree, reports).status().code(), Code::kDataLoss);
  reports = ReportsOf({ReplyOf(1, 1, {{1, 1}}, "hh")}, {1, 1, 1});
  reports[0].records[1].offset = RingOffset(3 * kLineBytes);
  EXPECT_EQ(Choose({1, 1, 1}, reports).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace alpheus::recovery
