// SPDX-License-Identifier: Apache-2.0
// Does the oracle of a simulated log see each of its invariants violated? Every
// test but the first violates one by hand.
#include "tools/sim/world/history.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "tests/tools/sim/world/checked_world.h"

namespace alpheus::sim {
namespace {

constexpr size_t kOperationBytes = 40;

class HistoryTest : public CheckerTest {
 protected:
  // A record that its client completed.
  OperationId Write(PrimaryNumber primary, uint64_t lsn) {
    const OperationId operation = history_.Begin(primary, kOperationBytes);
    history_.MayBeCompleted(operation);
    history_.HasLsn(operation, Lsn(lsn));
    return operation;
  }
  // One that its client aborted.
  OperationId Abort(PrimaryNumber primary, uint64_t lsn) {
    const OperationId operation = history_.Begin(primary, kOperationBytes);
    history_.HasLsn(operation, Lsn(lsn));
    history_.MayBeAborted(operation);
    return operation;
  }
  // A primary whose records are 1 to `count`, all acknowledged.
  PrimaryNumber WriteLog(uint64_t count) {
    const PrimaryNumber primary = OpenEmpty(1);
    for (uint64_t lsn = 1; lsn <= count; ++lsn) {
      operations_.push_back(Write(primary, lsn));
    }
    history_.Acknowledged(primary, Lsn(count));
    return primary;
  }
  PrimaryNumber OpenEmpty(uint64_t epoch) { return Open(epoch, 1, {}); }

  History::Shown Record(uint64_t lsn, uint64_t epoch, OperationId operation) {
    payloads_.emplace_back(kOperationBytes);
    FillPayload(operation, payloads_.back());
    return {
        .lsn = Lsn(lsn), .epoch = Epoch(epoch), .payload = payloads_.back()};
  }
  static History::Shown Aborted(uint64_t lsn, uint64_t epoch) {
    return {
        .lsn = Lsn(lsn), .epoch = Epoch(epoch), .aborted = true, .payload = {}};
  }
  static History::Shown Cleaned(uint64_t lsn, uint64_t epoch) {
    return {
        .lsn = Lsn(lsn), .epoch = Epoch(epoch), .cleaned = true, .payload = {}};
  }
  // The records that WriteLog wrote, as epoch 1 has them.
  std::vector<History::Shown> Records(uint64_t first, uint64_t last) {
    std::vector<History::Shown> records;
    for (uint64_t lsn = first; lsn <= last; ++lsn) {
      records.push_back(Record(lsn, 1, operations_[lsn - 1]));
    }
    return records;
  }

  // Shows records from `head` on; the next LSN is the one behind them.
  PrimaryNumber Open(uint64_t epoch, uint64_t head,
                     const std::vector<History::Shown>& records) {
    const PrimaryNumber primary = history_.NewPrimary();
    history_.Opens(primary);
    history_.Opened(primary, Epoch(epoch), Lsn(head),
                    Lsn(head + records.size()), records);
    return primary;
  }

  History history_{oracle_};
  std::deque<std::vector<std::byte>> payloads_;
  std::vector<OperationId> operations_;
};

TEST_F(HistoryTest, AGoodHistoryViolatesNothing) {
  const PrimaryNumber first = WriteLog(4);
  Abort(first, 5);
  const OperationId in_doubt = Write(first, 6);
  history_.MayBeCleaned(first, Lsn(2));
  auto records = Records(1, 4);
  records[1] = Cleaned(2, 1);
  records.push_back(Aborted(5, 1));
  const PrimaryNumber second = Open(2, 1, records);
  EXPECT_EQ(violated(), "");
  // LSN 6 was not shown: it is the second's now.
  EXPECT_NE(Write(second, 6), in_doubt);
  history_.Acknowledged(second, Lsn(6));
  history_.MayBeCleanedThrough(second, Lsn(6));
  history_.Emptied(Lsn(7), Lsn(7), Lsn(7));
  Open(3, 7, {});
  EXPECT_EQ(violated(), "");
  EXPECT_EQ(history_.records_acknowledged(), 5u);
  EXPECT_EQ(history_.chosen_end(), Lsn(7));
}

TEST_F(HistoryTest, TheFirstViolationCounts) {
  WriteLog(2);
  OpenEmpty(2);
  OpenEmpty(2);
  ASSERT_EQ(violated(), "P-C1");
  EXPECT_EQ(oracle_.violation()->at_ns, 7);
  EXPECT_NE(oracle_.violation()->what.find("LSN 1"), std::string::npos);
}

TEST_F(HistoryTest, AnAcknowledgedRecordThatIsNotShownViolatesC1) {
  WriteLog(3);
  Open(2, 1, Records(1, 2));
  EXPECT_EQ(violated(), "P-C1");
}

TEST_F(HistoryTest, AnOpeningMayNotKnowWhatIsAcknowledgedMeanwhile) {
  const PrimaryNumber first = OpenEmpty(1);
  const PrimaryNumber second = history_.NewPrimary();
  history_.Opens(second);
  Write(first, 1);
  history_.Acknowledged(first, Lsn(1));
  history_.Opened(second, Epoch(2), Lsn(1), Lsn(1), {});
  EXPECT_EQ(violated(), "");
}

TEST_F(HistoryTest, AHoleViolatesC2) {
  WriteLog(3);
  auto records = Records(1, 3);
  records.erase(records.begin() + 1);
  Open(2, 1, records);
  EXPECT_EQ(violated(), "P-C2");
}

TEST_F(HistoryTest, ARecordOfAnEpochThatNobodyOpenedViolatesC3) {
  WriteLog(1);
  Open(3, 1, {Record(1, 2, operations_[0])});
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, BytesThatNobodyWroteViolateC3) {
  WriteLog(1);
  const auto records = Records(1, 1);
  payloads_.back()[kOperationBytes - 1] ^= std::byte{1};
  Open(2, 1, records);
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, ARecordThatIsTooShortViolatesC3) {
  WriteLog(1);
  auto records = Records(1, 1);
  records[0].payload = records[0].payload.first(kOperationBytes - 1);
  Open(2, 1, records);
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, AnEmptyRecordViolatesC3) {
  WriteLog(1);
  auto records = Records(1, 1);
  records[0].payload = {};
  Open(2, 1, records);
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, ARecordThatWasOnlyReservedViolatesC3) {
  const PrimaryNumber first = OpenEmpty(1);
  const OperationId operation = history_.Begin(first, kOperationBytes);
  history_.HasLsn(operation, Lsn(1));
  Open(2, 1, {Record(1, 1, operation)});
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, ARecordAtAnotherPlaceViolatesC3) {
  const PrimaryNumber first = OpenEmpty(1);
  Write(first, 1);
  const OperationId second = Write(first, 2);
  Open(2, 1, {Record(1, 1, second)});
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, ARecordThatIsShownTwiceViolatesC3) {
  const PrimaryNumber first = OpenEmpty(1);
  // Its client was not told where it is.
  const OperationId operation = history_.Begin(first, kOperationBytes);
  history_.MayBeCompleted(operation);
  Open(2, 1, {Record(1, 1, operation), Record(2, 1, operation)});
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, AnAbortThatNobodyAskedForViolatesC3) {
  const PrimaryNumber first = OpenEmpty(1);
  Write(first, 1);
  Open(2, 1, {Aborted(1, 1)});
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, ARecordThatIsShownAndLaterIsNotViolatesC1) {
  const PrimaryNumber first = OpenEmpty(1);
  const OperationId operation = Write(first, 1);
  Open(2, 1, {Record(1, 1, operation)});
  EXPECT_EQ(violated(), "");
  OpenEmpty(3);
  EXPECT_EQ(violated(), "P-C1");
}

TEST_F(HistoryTest, ARecordThatIsShownAndLaterIsAbortedViolatesC4) {
  const PrimaryNumber first = OpenEmpty(1);
  const OperationId operation = Write(first, 1);
  history_.MayBeAborted(operation);
  Open(2, 1, {Record(1, 1, operation)});
  EXPECT_EQ(violated(), "");
  Open(3, 1, {Aborted(1, 1)});
  EXPECT_EQ(violated(), "P-C4");
}

// Tails.

TEST_F(HistoryTest, ATailMayLeaveOutWhatWasAborted) {
  const PrimaryNumber first = WriteLog(1);
  Abort(first, 2);
  const OperationId third = Write(first, 3);
  history_.Followed(Lsn(0), Record(1, 1, operations_[0]));
  history_.Followed(Lsn(2), Record(3, 1, third));
  EXPECT_EQ(violated(), "");
}

TEST_F(HistoryTest, ATailThatLeavesOutARecordViolatesC2) {
  WriteLog(3);
  history_.Followed(Lsn(2), Record(3, 1, operations_[2]));
  EXPECT_EQ(violated(), "P-C2");
}

TEST_F(HistoryTest, ATailThatGoesBackViolatesC2) {
  WriteLog(3);
  history_.Followed(Lsn(3), Record(2, 1, operations_[1]));
  EXPECT_EQ(violated(), "P-C2");
}

TEST_F(HistoryTest, ATailThatShowsWhatNobodyWroteViolatesC3) {
  WriteLog(2);
  history_.Followed(Lsn(1), Record(1, 1, operations_[1]));
  EXPECT_EQ(violated(), "P-C3");
}

TEST_F(HistoryTest, WhatATailShowedAndALaterOpeningLacksViolatesC1) {
  const PrimaryNumber first = OpenEmpty(1);
  history_.Followed(Lsn(1), Record(1, 1, Write(first, 1)));
  EXPECT_EQ(violated(), "");
  OpenEmpty(2);
  EXPECT_EQ(violated(), "P-C1");
}

TEST_F(HistoryTest, ATailThatIsToldOfACleanedHeadViolatesNothing) {
  const PrimaryNumber first = WriteLog(2);
  history_.MayBeCleanedThrough(first, Lsn(2));
  history_.Overtaken(Lsn(1), Lsn(3));
  EXPECT_EQ(violated(), "");
}

TEST_F(HistoryTest, ATailThatIsSentAwayFromWhatNobodyCleanedViolatesL10) {
  WriteLog(2);
  history_.Overtaken(Lsn(1), Lsn(3));
  EXPECT_EQ(violated(), "P-L10");
}

TEST_F(HistoryTest, ATailThatIsSentAwayFromTheHeadViolatesL10) {
  const PrimaryNumber first = WriteLog(2);
  history_.MayBeCleanedThrough(first, Lsn(2));
  history_.Overtaken(Lsn(3), Lsn(3));
  EXPECT_EQ(violated(), "P-L10");
}

TEST_F(HistoryTest, AClientThatIsToldAnotherPlaceThanWasShownViolatesC4) {
  const PrimaryNumber first = OpenEmpty(1);
  const OperationId shown = history_.Begin(first, kOperationBytes);
  history_.MayBeCompleted(shown);
  Open(2, 1, {Record(1, 1, shown)});
  Write(first, 1);
  EXPECT_EQ(violated(), "P-C4");
}

TEST_F(HistoryTest, TwoPrimariesThatAcknowledgeOnePlaceViolateC5) {
  const PrimaryNumber first = OpenEmpty(1);
  const PrimaryNumber second = OpenEmpty(2);
  Write(first, 1);
  Write(second, 1);
  history_.Acknowledged(first, Lsn(1));
  EXPECT_EQ(violated(), "");
  history_.Acknowledged(second, Lsn(1));
  EXPECT_EQ(violated(), "P-C5");
}

TEST_F(HistoryTest, AcknowledgingWhatWasOnlyReservedViolatesF1) {
  const PrimaryNumber first = OpenEmpty(1);
  history_.HasLsn(history_.Begin(first, kOperationBytes), Lsn(1));
  history_.Acknowledged(first, Lsn(1));
  EXPECT_EQ(violated(), "P-F1");
}

TEST_F(HistoryTest, APlaceThatIsGivenTwiceViolatesItsOrder) {
  const PrimaryNumber first = OpenEmpty(1);
  Write(first, 1);
  Write(first, 1);
  EXPECT_EQ(violated(), "P-A3.1");
}

TEST_F(HistoryTest, AnEpochThatIsOpenedTwiceIsSeen) {
  OpenEmpty(1);
  OpenEmpty(1);
  EXPECT_EQ(violated(), "P-INV-4");
}

TEST_F(HistoryTest, AnEndThatIsNotBehindTheLastRecordIsSeen) {
  WriteLog(2);
  const PrimaryNumber second = history_.NewPrimary();
  history_.Opens(second);
  history_.Opened(second, Epoch(2), Lsn(1), Lsn(4), Records(1, 2));
  EXPECT_EQ(violated(), "P-INV-11");
}

TEST_F(HistoryTest, ACleanedRecordThatNobodyCleanedViolatesL8) {
  WriteLog(2);
  auto records = Records(1, 2);
  records[1] = Cleaned(2, 1);
  Open(2, 1, records);
  EXPECT_EQ(violated(), "P-L8");
}

TEST_F(HistoryTest, AHeadBehindWhatNobodyCleanedViolatesL10) {
  history_.MayBeCleaned(WriteLog(3), Lsn(1));
  Open(2, 3, Records(3, 3));
  EXPECT_EQ(violated(), "P-L10");
}

TEST_F(HistoryTest, AHeadMayPassWhatWasCleanedOrAborted) {
  const PrimaryNumber first = WriteLog(1);
  Abort(first, 2);
  history_.MayBeCleaned(first, Lsn(1));
  Open(2, 3, {});
  EXPECT_EQ(violated(), "");
}

// A primary asks to clean what never becomes durable; another one writes there.
TEST_F(HistoryTest, WhatAnotherPrimaryCleanedOrAbortedIsStillNeeded) {
  const PrimaryNumber first = WriteLog(1);
  Write(first, 2);
  Abort(first, 3);
  history_.MayBeCleanedThrough(first, Lsn(2));
  const PrimaryNumber second = Open(2, 1, Records(1, 1));
  Write(second, 2);
  Write(second, 3);
  history_.Acknowledged(second, Lsn(3));
  EXPECT_TRUE(history_.IsCleaned(Lsn(1)));
  EXPECT_FALSE(history_.IsCleaned(Lsn(2)));
  history_.MayBeCleanedThrough(second, Lsn(2));
  EXPECT_TRUE(history_.IsCleaned(Lsn(2)));
  Open(3, 4, {});
  EXPECT_EQ(violated(), "P-L10");
}

TEST_F(HistoryTest, WhatWasCleanedAsAWholeAndComesBackViolatesL11) {
  history_.MayBeCleanedThrough(WriteLog(3), Lsn(3));
  history_.Emptied(Lsn(4), Lsn(4), Lsn(4));
  Open(2, 3, Records(3, 3));
  EXPECT_EQ(violated(), "P-L11");
}

TEST_F(HistoryTest, CleaningEverythingThatWasStillOpenViolatesL11) {
  history_.MayBeCleanedThrough(WriteLog(3), Lsn(3));
  history_.Emptied(Lsn(4), /*open=*/Lsn(3), /*durable_head=*/Lsn(4));
  EXPECT_EQ(violated(), "P-L11");
}

TEST_F(HistoryTest, CleaningEverythingOnTooFewMediaViolatesL11) {
  history_.MayBeCleanedThrough(WriteLog(3), Lsn(3));
  history_.Emptied(Lsn(4), Lsn(4), /*durable_head=*/Lsn(3));
  EXPECT_EQ(violated(), "P-L11");
}

TEST_F(HistoryTest, RefusingToCleanALogWithoutReservationsViolatesL11) {
  const PrimaryNumber first = WriteLog(3);
  history_.MayBeCleanedThrough(first, Lsn(3));
  history_.MayBeCleanedThrough(first, Lsn(3));
  history_.NotEmptied(first, Lsn(4), /*open=*/Lsn(3));
  EXPECT_EQ(violated(), "");
  history_.NotEmptied(first, Lsn(4), /*open=*/Lsn(4));
  EXPECT_EQ(violated(), "P-L11");
}

TEST_F(HistoryTest, ACleanupThatWasRefusedWithdrawsItsMark) {
  const PrimaryNumber first = WriteLog(3);
  history_.MayBeCleanedThrough(first, Lsn(1));
  history_.MayBeCleanedThrough(first, Lsn(3));
  EXPECT_TRUE(history_.IsCleaned(Lsn(3)));
  history_.NotCleanedThrough(first, Lsn(3));
  EXPECT_TRUE(history_.IsCleaned(Lsn(1)));
  EXPECT_FALSE(history_.IsCleaned(Lsn(2)));
  EXPECT_EQ(violated(), "");
  history_.JudgeHeadOfMedium(0, Lsn(4));
  EXPECT_EQ(violated(), "P-L10");
}

// One of two calls for the same records was refused.
TEST_F(HistoryTest, AMarkIsWithdrawnOnce) {
  const PrimaryNumber first = WriteLog(3);
  history_.MayBeCleanedThrough(first, Lsn(3));
  history_.MayBeCleanedThrough(first, Lsn(3));
  history_.JudgeHeadOfMedium(0, Lsn(4));
  history_.NotCleanedThrough(first, Lsn(3));
  history_.JudgeHeadOfMedium(0, Lsn(4));
  EXPECT_EQ(violated(), "");
  // A record that was once found to be cleaned is judged again.
  history_.NotCleanedThrough(first, Lsn(3));
  history_.JudgeHeadOfMedium(0, Lsn(4));
  EXPECT_EQ(violated(), "P-L10");
}

TEST_F(HistoryTest, AHeadBeforeTheOneOfAWriteQuorumViolatesL9) {
  history_.MayBeCleanedThrough(WriteLog(3), Lsn(3));
  const PrimaryNumber second = history_.NewPrimary();
  history_.Opens(second, /*durable_head=*/Lsn(3));
  history_.Opened(second, Epoch(2), Lsn(2), Lsn(4), Records(2, 3));
  EXPECT_EQ(violated(), "P-L9");
}

TEST(FillPayloadTest, EachOperationHasBytesOfItsOwn) {
  std::vector<std::byte> a(kOperationBytes);
  std::vector<std::byte> b(kOperationBytes);
  FillPayload(1, a);
  FillPayload(2, b);
  for (size_t i = 0; i + 8 <= kOperationBytes; i += 8) {
    EXPECT_FALSE(std::equal(a.begin() + i, a.begin() + i + 8, b.begin() + i));
  }
  std::vector<std::byte> odd(kPayloadBytesMin + 3);
  FillPayload(1, odd);
  EXPECT_TRUE(std::equal(odd.begin(), odd.end(), a.begin()));
}

}  // namespace
}  // namespace alpheus::sim
