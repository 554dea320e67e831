// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/state_report_wire.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gtest/gtest.h"
#include "log/base/bytes.h"
#include "recovery/protocol/messages.h"
#include "tests/recovery/protocol/wire_samples.h"

namespace alpheus::testing {

using recovery::AddVerdict;
using recovery::DecodeStateReport;
using recovery::EncodeStateReport;
using recovery::StateReport;

namespace {

// have 2, 3; torn 4; absent 5; have 6; corrupt 7 by the proven LSN.
StateReport SampleReport() {
  StateReport report;
  report.node = NodeId(3);
  report.incarnation = 33;
  report.configuration = TwoMembers();
  report.ring_capacity = 1024;
  report.log_epoch = Epoch(3);
  report.promised_before = Epoch(4);
  report.table = TableOf(3);
  report.head = {Lsn(2), RingOffset(64), 5};
  report.proven_lsn = Lsn(7);
  recovery::AddRecord(&report, {Epoch(2), RingOffset(64), 11, 1});
  recovery::AddRecord(&report, {Epoch(3), RingOffset(192), 12, 2});
  AddVerdict(&report, recovery::Verdict::kTorn);
  AddVerdict(&report, recovery::Verdict::kAbsent);
  recovery::AddRecord(&report, {Epoch(3), RingOffset(1024), 13, 1});
  AddVerdict(&report, recovery::Verdict::kCorrupt);
  return report;
}

bool ReportDecodes(std::span<const std::byte> bytes) {
  return DecodeStateReport(kLog, bytes).ok();
}

// Where the parts of SampleReport lie.
constexpr size_t kConfigurationAt = 24;
constexpr size_t kMadeFromAt = kConfigurationAt + 16 + 2 * 16;
constexpr size_t kCapacityAt = kMadeFromAt + 16 + 3 * 16;
constexpr size_t kHeadAt = kCapacityAt + 24;
constexpr size_t kProvenAt = kHeadAt + 24;
constexpr size_t kFlagsAt = kProvenAt + 8;
constexpr size_t kTableAt = kFlagsAt + 4;
constexpr size_t kPlaceAt = kTableAt + 4 + 3 * 40;
constexpr size_t kRunsAt = kPlaceAt + 24;
constexpr size_t kRecordsAt = kRunsAt + 8 + 5 * 16;
constexpr size_t kSampleBytes = kRecordsAt + 8 + 3 * 24 + 4;

TEST(StateReportBytesTest, ComeBackAsTheyWere) {
  const StateReport report = SampleReport();
  const auto bytes = EncodeStateReport(kLog, report);
  EXPECT_EQ(bytes.size(), kSampleBytes);
  EXPECT_LE(bytes.size(), recovery::StateReportBytesMax(report.ring_capacity));
  const auto again = DecodeStateReport(kLog, bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->node, report.node);
  EXPECT_EQ(again->incarnation, report.incarnation);
  EXPECT_EQ(again->configuration, report.configuration);
  EXPECT_EQ(again->ring_capacity, report.ring_capacity);
  EXPECT_EQ(again->log_epoch, report.log_epoch);
  EXPECT_EQ(again->promised_before, report.promised_before);
  EXPECT_EQ(again->table, report.table);
  EXPECT_EQ(again->head, report.head);
  EXPECT_EQ(again->proven_lsn, report.proven_lsn);
  EXPECT_TRUE(again->knows());
  EXPECT_EQ(again->runs, report.runs);
  EXPECT_EQ(again->records, report.records);
  EXPECT_FALSE(again->place.has_value());
}

// The same without LSN 2, which the replica says that it has.
StateReport ShortReport() {
  StateReport report = SampleReport();
  report.place = LogPosition{Lsn(3), RingOffset(128), 6};
  report.runs.clear();
  report.records.clear();
  recovery::AddRecord(&report, {Epoch(3), RingOffset(192), 12, 2});
  AddVerdict(&report, recovery::Verdict::kCorrupt, 5);
  return report;
}

TEST(StateReportBytesTest, PlaceComesBackAsItWas) {
  const StateReport report = ShortReport();
  const auto again = DecodeStateReport(kLog, EncodeStateReport(kLog, report));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->place, report.place);
  EXPECT_EQ(again->runs, report.runs);
  EXPECT_EQ(again->records, report.records);
}

TEST(StateReportBytesTest, PlacesThatCannotBeAreNone) {
  // Places of a record that is not proven; of none, after the head; more than a
  // lap after it; with fewer lines than records before it.
  for (const LogPosition& place : {LogPosition{Lsn(8), RingOffset(640), 6},
                                   LogPosition{Lsn(2), RingOffset(128), 6},
                                   LogPosition{Lsn(1), RingOffset(64), 6},
                                   LogPosition{Lsn(3), RingOffset(64), 6},
                                   LogPosition{Lsn(3), RingOffset(129), 6},
                                   LogPosition{Lsn(3), RingOffset(1152), 6},
                                   LogPosition{Lsn(4), RingOffset(128), 6}}) {
    StateReport report = ShortReport();
    report.place = place;
    EXPECT_FALSE(ReportDecodes(EncodeStateReport(kLog, report)))
        << place.lsn.value << " at " << place.offset.value;
  }
  // Nobody owns what lies before it; the replica knows nothing.
  StateReport report = ShortReport();
  report.table = EpochTable::Empty(kLog);
  EXPECT_FALSE(ReportDecodes(EncodeStateReport(kLog, report)));
  report = ShortReport();
  report.repairing = true;
  EXPECT_FALSE(ReportDecodes(EncodeStateReport(kLog, report)));
}

// docs/formats/recovery_wire.md, byte by byte.
TEST(StateReportBytesTest, HaveTheOrderOfTheDocument) {
  StateReport report;
  report.node = NodeId(3);
  report.incarnation = 0x21;
  report.configuration = {{5, 1, 1, {{NodeId(3), 0x21}}},
                          MemberList{4, 1, 1, {{NodeId(2), 0x22}}}};
  report.ring_capacity = 1024;
  report.log_epoch = Epoch(4);
  report.promised_before = Epoch(6);
  report.table = EpochTable::Empty(kLog);
  report.head = {Lsn(2), RingOffset(64), 7};
  report.proven_lsn = Lsn(2);
  report.repairing = true;
  AddVerdict(&report, recovery::Verdict::kTorn);
  AddVerdict(&report, recovery::Verdict::kAbsent);
  const std::string expected(
      "APAN\32\0\0\0"
      "\3\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0"
      "\5\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0"
      "\3\0\0\0\0\0\0\0\x21\0\0\0\0\0\0\0"
      "\4\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0"
      "\2\0\0\0\0\0\0\0\x22\0\0\0\0\0\0\0"
      "\0\4\0\0\0\0\0\0"
      "\4\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\4\0\0\0"
      "\0\0\0\0"
      "\2\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0"
      "\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
      "\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\342\276\153\063",
      228);
  EXPECT_EQ(AsText(EncodeStateReport(kLog, report)), expected);
  EXPECT_TRUE(ReportDecodes(EncodeStateReport(kLog, report)));
}

// MSG1 (messages.h): nothing of what was changed is decoded, and it is no
// damage of the replica.
TEST(StateReportBytesTest, EveryTurnedBitIsSeenAsChangedOnItsWay) {
  const auto bytes = EncodeStateReport(kLog, SampleReport());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    auto changed = bytes;
    changed[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    const absl::Status status = DecodeStateReport(kLog, changed).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << bit << ": " << status;
  }
  EXPECT_TRUE(absl::IsUnavailable(DecodeStateReport({7, 9}, bytes).status()));
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeStateReport(kLog, With<uint32_t>(bytes, 0, 0)).status()));
}

TEST(StateReportBytesTest, WhatIsNotKnownComesBackToo) {
  for (int flags = 0; flags < 8; ++flags) {
    StateReport report = SampleReport();
    report.runs.clear();
    report.records.clear();
    report.blank = (flags & 1) != 0;
    report.suspect = (flags & 2) != 0;
    report.repairing = (flags & 4) != 0;
    const auto again = DecodeStateReport(kLog, EncodeStateReport(kLog, report));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->blank, report.blank);
    EXPECT_EQ(again->suspect, report.suspect);
    EXPECT_EQ(again->repairing, report.repairing);
  }
  EXPECT_FALSE(ReportDecodes(
      With<uint32_t>(EncodeStateReport(kLog, SampleReport()), kFlagsAt, 8)));
}

TEST(StateReportBytesTest, ListOfNoOriginComesBackToo) {
  StateReport report = SampleReport();
  report.configuration.made_from.reset();
  const auto again = DecodeStateReport(kLog, EncodeStateReport(kLog, report));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->configuration, report.configuration);
}

TEST(StateReportBytesTest, ShorterOrLongerOnesAreNone) {
  auto bytes = EncodeStateReport(kLog, SampleReport());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReportDecodes(std::span(bytes).first(size))) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(ReportDecodes(bytes));
}

TEST(StateReportBytesTest, ValuesThatCannotBeAreNone) {
  const auto bytes = EncodeStateReport(kLog, SampleReport());
  EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, 0, 0)));
  EXPECT_FALSE(ReportDecodes(With(bytes, 4, recovery::kProtocolVersion + 1)));
  for (const size_t at : {kConfigurationAt, kMadeFromAt}) {
    EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, at + 8, 0)));  // N
    EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, at + 8, 17)));
    EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, at + 12, 0)));  // W
    EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, at + 12, 4)));
  }
  // Too small for what is said; no whole lines; more than there can be.
  for (const uint64_t capacity : {uint64_t{64}, uint64_t{1025}, kHuge - 63}) {
    EXPECT_FALSE(ReportDecodes(With(bytes, kCapacityAt, capacity))) << capacity;
  }
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kHeadAt, 0)));
  EXPECT_FALSE(ReportDecodes(With(bytes, kHeadAt, kHuge)));
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kHeadAt + 8, 1)));
  // 16 lines hold at most LSNs 2 to 17.
  EXPECT_TRUE(ReportDecodes(With<uint64_t>(bytes, kProvenAt, 17)));
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kProvenAt, 18)));
  EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, kTableAt, 0xffffffff)));
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kTableAt + 4 + 40, 1)));
}

TEST(StateReportBytesTest, RunsThatCannotBeAreNone) {
  const auto bytes = EncodeStateReport(kLog, SampleReport());
  constexpr size_t kFirst = kRunsAt + 8;
  for (const uint64_t count :
       {uint64_t{0}, uint64_t{4}, uint64_t{6}, uint64_t{1} << 60, kHuge}) {
    EXPECT_FALSE(ReportDecodes(With(bytes, kRunsAt, count))) << count;
  }
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kFirst, 5)));  // verdict
  for (const uint64_t lsns : {uint64_t{0}, uint64_t{1}, uint64_t{3}, kHuge}) {
    EXPECT_FALSE(ReportDecodes(With(bytes, kFirst + 8, lsns))) << lsns;
  }
  // The last run, of LSN 7 on: 16 lines from LSN 2 on end behind LSN 17.
  EXPECT_TRUE(ReportDecodes(With<uint64_t>(bytes, kFirst + 4 * 16 + 8, 11)));
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kFirst + 4 * 16 + 8, 12)));
}

TEST(StateReportBytesTest, ReportedRecordsThatCannotBeAreNone) {
  const auto bytes = EncodeStateReport(kLog, SampleReport());
  constexpr size_t kFirst = kRecordsAt + 8;
  for (const uint64_t count :
       {uint64_t{2}, uint64_t{4}, uint64_t{1} << 61, kHuge}) {
    EXPECT_FALSE(ReportDecodes(With(bytes, kRecordsAt, count))) << count;
  }
  // An epoch that does not own the LSN.
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kFirst, 3)));
  EXPECT_FALSE(ReportDecodes(With<uint64_t>(bytes, kFirst, 0)));
  // Before the head; in the middle of a line; where another one lies; and
  // behind the lap.
  for (const uint64_t offset : {0, 65, 192, 1088}) {
    EXPECT_FALSE(ReportDecodes(With(bytes, kFirst + 8, offset))) << offset;
  }
  EXPECT_FALSE(ReportDecodes(With(bytes, kFirst + 8, kHuge - 63)));
  for (const uint32_t lines : {0u, 3u, 0xffffffffu}) {
    EXPECT_FALSE(ReportDecodes(With(bytes, kFirst + 20, lines))) << lines;
  }
  // The last one may end where the lap does, at 1088, not behind it.
  EXPECT_FALSE(ReportDecodes(With<uint32_t>(bytes, kFirst + 48 + 20, 2)));
  // Nor across the end of the ring, at 1024.
  EXPECT_TRUE(ReportDecodes(With<uint64_t>(bytes, kFirst + 48 + 8, 960)));
  EXPECT_FALSE(ReportDecodes(With<uint32_t>(
      With<uint64_t>(bytes, kFirst + 48 + 8, 960), kFirst + 48 + 20, 2)));
  // Nothing owns LSN 2 in an empty table.
  StateReport unowned = SampleReport();
  unowned.table = EpochTable::Empty(kLog);
  EXPECT_FALSE(ReportDecodes(EncodeStateReport(kLog, unowned)));
}

}  // namespace
}  // namespace alpheus::testing
