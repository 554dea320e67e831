// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/local_opening.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/format/superline.h"
#include "recovery/protocol/deletion.h"
#include "recovery/replica/local_replica.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::recovery {

using model::ModelPersistence;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LivePayloads;
using testing::LogHarness;
using ::testing::SizeIs;

using Code = absl::StatusCode;

std::vector<std::byte> Snapshot(LogHarness& harness) {
  return {harness.region().begin(), harness.region().end()};
}

class LocalOpeningTest : public ::testing::Test {
 protected:
  LocalOpeningTest()
      : harness_({.ring_capacity = 1024, .table_capacity = 102}) {}

  Superline ReadSuperline() {
    return ReadRegionState(harness_.region(), "model")->superline;
  }

  LogHarness harness_;
};

TEST_F(LocalOpeningTest, NewLogOpensItsFirstEpoch) {
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().epoch, Epoch(1));
  EXPECT_EQ(harness_.opened().previous_epoch, Epoch(0));
  EXPECT_EQ(harness_.log().next_lsn(), Lsn(1));
}

TEST_F(LocalOpeningTest, EveryOpeningHasAnEpochAndANonceOfItsOwn) {
  std::set<uint64_t> nonces;
  for (uint64_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(harness_.Open().ok());
    EXPECT_EQ(harness_.opened().epoch, Epoch(i));
    nonces.insert(harness_.opened().start.table.entries().back().nonce);
    harness_.Append("x");
  }
  EXPECT_THAT(nonces, SizeIs(10));
  EXPECT_THAT(harness_.Recovered(), SizeIs(10));
}

// P-H13: a record that an opening cut never comes back, not even beside new
// records.
TEST_F(LocalOpeningTest, TornTailNeverResurrects) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("kept");
  auto open = harness_.log().Reserve(1, Deadline());
  auto cut = harness_.log().Reserve(3, Deadline());
  ASSERT_TRUE(harness_.log().Copy(*cut, 0, AsBytes("cut")).ok());
  ASSERT_TRUE(harness_.log().Complete(*cut).ok());
  const std::vector<std::byte> image = Snapshot(harness_);
  harness_.log().Abort(*open);
  harness_.Drop();
  harness_.pmem().Reset(image);  // the crash, before the abort

  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_EQ(harness_.opened().scan.verdict, TailVerdict::kTorn);
  EXPECT_EQ(harness_.opened().scan.cut_records, 1u);
  EXPECT_THAT(harness_.Recovered(), ElementsAre("kept"));
  harness_.Append("2");  // of the very size of the hole
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), ElementsAre("kept", "2"));
}

// P-H14: a client that knows everything but the nonce of an epoch to come lets
// a header of it lie in a payload, at the very place where that epoch's next
// record is looked for.
TEST_F(LocalOpeningTest, PayloadThatImitatesALaterHeaderIsNoRecord) {
  constexpr RingOffset kPlace(3 * kLineBytes);
  constexpr std::string_view kText = "forged";
  ASSERT_TRUE(harness_.Open().ok());
  const uint64_t seed = EpochKey(ReadSuperline().log_id, Epoch(2), /*nonce=*/0)
                            .Seed(Lsn(3), kPlace);
  RecordHeader forged{};
  forged.lsn = 3;
  forged.epoch = 2;
  forged.payload_bytes = kText.size();
  forged.magic = kRecordMagic;
  forged.type = static_cast<uint8_t>(RecordType::kData);
  forged.payload_crc = PayloadChecksum(seed, Crc32c(kCrcStart, AsBytes(kText)));
  forged.header_crc = HeaderChecksum(seed, forged);

  // LSN 1 in line 0, LSN 2 in line 1 (never completed), LSN 3 from line 2 on;
  // behind 16 bytes of its payload line 3 begins.
  harness_.Append("kept");
  auto open = harness_.log().Reserve(1, Deadline());
  auto carrier = harness_.log().Reserve(100, Deadline());
  ASSERT_TRUE(harness_.log()
                  .Copy(*carrier, 16, std::as_bytes(std::span(&forged, 1)))
                  .ok());
  ASSERT_TRUE(
      harness_.log().Copy(*carrier, 16 + sizeof(forged), AsBytes(kText)).ok());
  ASSERT_TRUE(harness_.log().Complete(*carrier).ok());
  const std::vector<std::byte> image = Snapshot(harness_);
  harness_.log().Abort(*open);
  harness_.Drop();
  harness_.pmem().Reset(image);  // the crash, before the abort

  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), ElementsAre("kept"));
  const std::string two_lines(40, '2');
  harness_.Append(two_lines);  // LSN 2 ends where the forged header lies
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), ElementsAre("kept", two_lines));
}

// P-H7: a recovered record is durable, even if it was only visible before.
TEST_F(LocalOpeningTest, VisibleRecordIsPersistedBeforeItIsShown) {
  ASSERT_TRUE(harness_.Open().ok());
  auto record = harness_.log().Reserve(7, Deadline());
  ASSERT_TRUE(harness_.log().Copy(*record, 0, AsBytes("visible")).ok());
  ASSERT_TRUE(harness_.log().Complete(*record).ok());
  harness_.Drop();  // kill -9: the caches survive
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), ElementsAre("visible"));
  harness_.PowerCut();
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.Recovered(), ElementsAre("visible"));
}

// Wherever the log ends, also where the index of LSNs has a step and several
// laps on, an opening flushes what nothing proves and no byte outside the ring.
TEST_F(LocalOpeningTest, ClosedLogOfAnyLengthOpens) {
  ASSERT_TRUE(harness_.Open().ok());
  for (int i = 0; i < 200; ++i) {
    const Lsn lsn = harness_.Append("x");
    if (lsn > Lsn(2)) {
      ASSERT_TRUE(harness_.log().CleanupThrough(lsn - 2).ok());
    }
    ASSERT_TRUE(harness_.log().Close().ok());
    const uint64_t flushed = harness_.pmem().lint().flushed_lines;
    ASSERT_TRUE(harness_.Open().ok()) << lsn;
    EXPECT_LT(harness_.pmem().lint().flushed_lines - flushed, 600u) << lsn;
    EXPECT_THAT(harness_.Recovered(), SizeIs(lsn == Lsn(1) ? 1 : 2));
  }
}

// LO1: a refused region is left byte for byte.
TEST_F(LocalOpeningTest, CorruptRecordIsDataLossAndChangesNothing) {
  ASSERT_TRUE(harness_.Open().ok());
  for (int i = 0; i < 3; ++i) harness_.Append("payload");
  ASSERT_TRUE(harness_.log().Close().ok());
  const Superline superline = ReadSuperline();
  harness_.Drop();
  harness_.region()[superline.ring_offset + 64 + 50] ^= std::byte{4};
  const std::vector<std::byte> before = Snapshot(harness_);
  const absl::Status refused = harness_.Open();
  EXPECT_EQ(refused.code(), Code::kDataLoss);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("LSN 2"),
                    HasSubstr(std::to_string(superline.ring_offset + 64)),
                    HasSubstr("alpheus salvage")));
  EXPECT_EQ(Snapshot(harness_), before);
}

TEST_F(LocalOpeningTest, OtherLogThanExpectedIsRefusedAndChangesNothing) {
  const std::vector<std::byte> before = Snapshot(harness_);
  Random random(1);
  LocalOpeningOptions options{"model", Uuid{7, 7}, Lsn(0)};
  const auto refused =
      OpenEpochLocally(harness_.pmem(), harness_.region(), options, random);
  EXPECT_EQ(refused.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Snapshot(harness_), before);
}

// P-D2: the only member of a cluster, which a program names by its file.
TEST_F(LocalOpeningTest, MarkedReplicaIsRefusedAndChangesNothing) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("kept");
  harness_.Drop();
  for (const Deletion deletion : {Deletion::kMarked, Deletion::kDecided}) {
    const auto replica = LocalReplica<ModelPersistence>::Open(
        harness_.pmem(), harness_.region(), {.name = "model"});
    ASSERT_TRUE(replica.ok()) << replica.status();
    ASSERT_TRUE((*replica)->MarkDeleted(deletion).ok());
    const std::vector<std::byte> before = Snapshot(harness_);
    const absl::Status refused = harness_.Open();
    EXPECT_EQ(refused.code(), Code::kNotFound) << refused;
    EXPECT_EQ(DeletionBy(refused), deletion) << refused;
    EXPECT_EQ(Snapshot(harness_), before);
  }
  EXPECT_THAT(LivePayloads(harness_.region()), ElementsAre("kept"));
}

// P-A2: one bad copy, or one bad watermark line, is made whole again.
TEST_F(LocalOpeningTest, SingleFaultsAreRepaired) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  ASSERT_TRUE(harness_.log().Close().ok());
  harness_.Drop();
  const Superline superline = ReadSuperline();
  const CellPlace table = EpochTablePlace(harness_.region(), superline);
  const std::vector<std::byte> image = Snapshot(harness_);
  for (const int copy : {0, 1}) {
    harness_.pmem().Reset(image);
    harness_.region()[copy * kPageBytes + 30] ^= std::byte{1};
    table.copies[copy][30] ^= std::byte{1};
    WatermarkLine(harness_.region(), copy)[3] ^= std::byte{1};
    ASSERT_TRUE(harness_.Open().ok());
    EXPECT_THAT(harness_.opened().repairs, SizeIs(3));
    EXPECT_THAT(harness_.Recovered(), ElementsAre("a"));
    harness_.Drop();
    const auto state = ReadRegionState(harness_.region(), "model");
    EXPECT_THAT(state->single_faults, IsEmpty());
    EXPECT_TRUE(state->superline_cell.copies_agree());
    EXPECT_TRUE(state->table_cell.copies_agree());
  }
}

TEST_F(LocalOpeningTest, DoubleFaultsAreDataLossAndChangeNothing) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  ASSERT_TRUE(harness_.log().Close().ok());
  harness_.Drop();
  const Superline superline = ReadSuperline();
  const CellPlace table = EpochTablePlace(harness_.region(), superline);
  const std::vector<std::byte> image = Snapshot(harness_);
  const std::vector<std::vector<std::byte*>> faults = {
      {&harness_.region()[30], &harness_.region()[kPageBytes + 30]},
      {table.copies[0] + 30, table.copies[1] + 30},
      {WatermarkLine(harness_.region(), 0),
       WatermarkLine(harness_.region(), 1)}};
  for (const auto& fault : faults) {
    harness_.pmem().Reset(image);
    for (std::byte* byte : fault) *byte ^= std::byte{1};
    const std::vector<std::byte> before = Snapshot(harness_);
    EXPECT_EQ(harness_.Open().code(), Code::kDataLoss);
    EXPECT_EQ(Snapshot(harness_), before);
  }
}

TEST_F(LocalOpeningTest, DamagedPadIsWrittenAgain) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append(std::string(400, 'a'));  // 448 bytes
  harness_.Append(std::string(400, 'b'));  // 448, then 128 to the end
  ASSERT_TRUE(harness_.log().CleanupThrough(Lsn(1)).ok());
  harness_.Append(std::string(200, 'c'));  // behind a PAD
  ASSERT_TRUE(harness_.log().Close().ok());
  harness_.Drop();
  const Superline superline = ReadSuperline();
  harness_.region()[superline.ring_offset + 896 + 20] ^= std::byte{1};
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_THAT(harness_.opened().repairs, ElementsAre(HasSubstr("PAD")));
  harness_.PowerCut();
  const auto state = ReadRegionState(harness_.region(), "model");
  const ScanResult scan = ScanLog(ScanInputOf(harness_.region(), *state));
  EXPECT_THAT(scan.damaged_pads, IsEmpty());
  EXPECT_EQ(scan.data_records, 2u);
}

// ET3 (epoch_table.h): the table has room for its capacity of live openings;
// then the log says how to go on, and goes on.
TEST_F(LocalOpeningTest, FullEpochTableIsRefusedWithAWayOut) {
  LogHarness harness({.ring_capacity = 1024, .table_capacity = 3});
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(harness.Open().ok());
    harness.Append("x");
  }
  harness.Drop();
  const std::vector<std::byte> before = Snapshot(harness);
  const absl::Status refused = harness.Open();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--through"));
  EXPECT_EQ(Snapshot(harness), before);
  ASSERT_TRUE(harness.Open(/*cleanup_through=*/Lsn(1)).ok());
  EXPECT_THAT(harness.Recovered(), SizeIs(2));
}

// ET3: the head is written when an epoch may leave, also by a process that is
// always killed and whose head moves by less than is worth writing.
TEST_F(LocalOpeningTest, EpochsWithoutRecordsLeaveThoughNobodyCloses) {
  constexpr uint64_t kTable = 260;
  // A sixteenth, from which on a head is always written, takes 1,024 records.
  LogHarness harness({.ring_capacity = 1 << 20, .table_capacity = kTable});
  for (uint64_t i = 1; i <= 2 * kTable; ++i) {
    ASSERT_TRUE(harness.Open().ok()) << "opening " << i;
    const Lsn lsn = harness.Append("x");
    ASSERT_TRUE(harness.log().Cleanup(lsn).ok());
    harness.Drop();
  }
}

TEST_F(LocalOpeningTest, CleaningBeyondTheEndIsRefusedAndChangesNothing) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("x");
  harness_.Drop();
  const std::vector<std::byte> before = Snapshot(harness_);
  EXPECT_EQ(harness_.Open(Lsn(2)).code(), Code::kOutOfRange);
  EXPECT_EQ(Snapshot(harness_), before);
  EXPECT_TRUE(harness_.Open(Lsn(1)).ok());
  EXPECT_THAT(harness_.Recovered(), IsEmpty());
  EXPECT_EQ(harness_.log().next_lsn(), Lsn(2));
}

// Every fence of an opening may be the last one before the medium fails.
TEST_F(LocalOpeningTest, FailureAtEachFenceIsReportedAndTheLogReopens) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  harness_.Drop();
  uint64_t fence = 1;
  for (;; ++fence) {
    harness_.pmem().FailFence(fence);
    const absl::Status opened = harness_.Open();
    harness_.Drop();
    if (opened.ok()) break;
    EXPECT_EQ(opened.code(), Code::kUnavailable);
    harness_.PowerCut();
    ASSERT_TRUE(harness_.Open().ok());
    EXPECT_THAT(harness_.Recovered(), ElementsAre("a"));
    harness_.Drop();
  }
  EXPECT_EQ(fence, 9u) << "an opening has eight fences";
}

// A copy that a killed process left in the caches is visible but not persisted.
// An opening that takes it for the good one and overwrites the other would lose
// both at a power cut (P-H7). Kill at each fence of an opening, cut the power
// at each fence of the next.
TEST_F(LocalOpeningTest, KillThenPowerCutAlwaysReopens) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  ASSERT_TRUE(harness_.log().Close().ok());
  harness_.Drop();
  const std::vector<std::byte> start = Snapshot(harness_);

  struct Killed {
    std::vector<std::byte> visible;
    std::vector<std::byte> persistent;
  };
  std::vector<Killed> kills;
  const auto at_each_fence = [this](const std::function<void()>& act) {
    harness_.pmem().SetHook([act](const ModelPersistence::Event& event) {
      if (event.primitive == ModelPersistence::Primitive::kFence) act();
    });
  };
  at_each_fence([&] {
    kills.push_back({Snapshot(harness_), harness_.pmem().CutKeepingNone()});
  });
  ASSERT_TRUE(harness_.Open().ok());
  harness_.pmem().SetHook({});
  EXPECT_THAT(kills, SizeIs(8));

  int cuts = 0;
  for (const Killed& killed : kills) {
    std::vector<std::vector<std::byte>> images;
    harness_.Drop();
    harness_.pmem().Reset(killed.persistent);
    std::memcpy(harness_.region().data(), killed.visible.data(),
                killed.visible.size());
    at_each_fence([&] { images.push_back(harness_.pmem().CutKeepingNone()); });
    ASSERT_TRUE(harness_.Open().ok());
    harness_.pmem().SetHook({});
    for (const std::vector<std::byte>& image : images) {
      harness_.Drop();
      harness_.pmem().Reset(image);
      const absl::Status reopened = harness_.Open();
      ASSERT_TRUE(reopened.ok()) << reopened;
      EXPECT_THAT(harness_.Recovered(), ElementsAre("a"));
      ++cuts;
    }
  }
  EXPECT_EQ(cuts, 64);
}

// A copy that a power cut tore in an opening is not taken for damage: the
// clean-close word goes first.
TEST_F(LocalOpeningTest, TornCopiesOfAnOpeningAreNeverCalledDamage) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  ASSERT_TRUE(harness_.log().Close().ok());
  EXPECT_TRUE(ReadRegionState(harness_.region(), "model")->closed_cleanly);
  harness_.Drop();
  int torn = 0;
  harness_.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    const auto words = harness_.pmem().DirtyWords();
    for (size_t only = 0; only < words.size(); ++only) {
      std::vector<uint8_t> choices(words.size(), 0);
      choices[only] = 1;
      std::vector<std::byte> image =
          harness_.pmem().CutChoosing(words, choices);
      const auto state = ReadRegionState(image, "model");
      ASSERT_TRUE(state.ok()) << state.status();
      if (state->single_faults.empty()) continue;
      ++torn;
      EXPECT_FALSE(state->closed_cleanly);
    }
  });
  ASSERT_TRUE(harness_.Open().ok());
  harness_.pmem().SetHook({});
  EXPECT_GT(torn, 10);
}

// P-A2: with one copy of the epoch table damaged, the other is touched only
// when the first is whole again.
TEST_F(LocalOpeningTest, OpeningNeverTearsTheOnlyGoodTable) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  harness_.Drop();
  const std::vector<std::byte> image = Snapshot(harness_);
  const CellPlace table = EpochTablePlace(harness_.region(), ReadSuperline());
  for (const int damaged : {0, 1}) {
    harness_.Drop();
    harness_.pmem().Reset(image);
    table.copies[damaged][30] ^= std::byte{1};
    harness_.pmem().SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive != ModelPersistence::Primitive::kFence) return;
      const auto words = harness_.pmem().DirtyWords();
      for (size_t only = 0; only < words.size(); ++only) {
        std::vector<uint8_t> choices(words.size(), 0);
        choices[only] = 1;
        std::vector<std::byte> cut =
            harness_.pmem().CutChoosing(words, choices);
        const auto state = ReadRegionState(cut, "model");
        EXPECT_TRUE(state.ok()) << state.status();
      }
    });
    ASSERT_TRUE(harness_.Open().ok());
    harness_.pmem().SetHook({});
  }
}

// P-A3.5, WMK2 (watermark.h): no power cut in an opening tears both lines.
TEST_F(LocalOpeningTest, OneWatermarkHoldsAtEveryCutOfAnOpening) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  harness_.Drop();
  int open_lines_seen = 0;
  harness_.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    std::set<size_t> open_lines;
    for (const auto& word : harness_.pmem().DirtyWords()) {
      for (const int line : {0, 1}) {
        const std::byte* at = harness_.region().data() + word.offset;
        const std::byte* begin = WatermarkLine(harness_.region(), line);
        if (at >= begin && at < begin + kLineBytes) open_lines.insert(line);
      }
    }
    EXPECT_LE(open_lines.size(), 1u);
    open_lines_seen += static_cast<int>(open_lines.size());
  });
  ASSERT_TRUE(harness_.Open().ok());
  harness_.pmem().SetHook({});
  EXPECT_GE(open_lines_seen, 2);
}

// P-A3.5: over openings, clean or not, no line names less than was proven.
TEST_F(LocalOpeningTest, WatermarkNeverGoesBackOverOpenings) {
  ASSERT_TRUE(harness_.Open().ok());
  for (int i = 0; i < 4; ++i) {
    harness_.Append("x");
    harness_.Append("y");
    if (i % 2 == 0) {
      ASSERT_TRUE(harness_.log().Close().ok());
    }
    const Lsn proven = ReadRegionState(harness_.region(), "model")->ProvenLsn();
    EXPECT_GT(proven, Lsn(0));
    ASSERT_TRUE(harness_.Open().ok());
    const auto state = ReadRegionState(harness_.region(), "model");
    for (const auto& line : state->watermarks.lines) {
      ASSERT_TRUE(line.has_value());
      EXPECT_EQ(line->epoch, harness_.opened().epoch);
      EXPECT_GE(line->lsn, proven);
    }
  }
}

// P-A3.5: between the superline of an epoch and its first watermark, the start
// of the epoch is what proves the records that it recovered.
TEST_F(LocalOpeningTest, StartOfTheEpochProvesWhatWasRecovered) {
  ASSERT_TRUE(harness_.Open().ok());
  for (int i = 0; i < 3; ++i) harness_.Append("payload");
  harness_.Drop();
  std::vector<std::vector<std::byte>> images;
  harness_.pmem().SetHook([&](const ModelPersistence::Event& event) {
    if (event.primitive != ModelPersistence::Primitive::kFence) return;
    images.push_back(harness_.pmem().CutKeepingNone());
  });
  ASSERT_TRUE(harness_.Open().ok());
  harness_.pmem().SetHook({});
  int without_watermark = 0;
  for (std::vector<std::byte>& image : images) {
    const auto state = ReadRegionState(image, "model");
    ASSERT_TRUE(state.ok()) << state.status();
    if (state->superline.log_epoch != Epoch(2) ||
        state->watermarks.Proven(Epoch(2)) != Lsn(0)) {
      continue;
    }
    ++without_watermark;
    // The last of the three, which nothing else proves.
    image[state->superline.ring_offset + 2 * kLineBytes] ^= std::byte{1};
    const ScanResult scan = ScanLog(ScanInputOf(image, *state));
    EXPECT_EQ(scan.verdict, TailVerdict::kCorrupt);
    EXPECT_EQ(scan.end.lsn, Lsn(3));
  }
  EXPECT_GE(without_watermark, 2);
}

// P-A2: the clean-close word speaks for one superline only.
TEST_F(LocalOpeningTest, CleanCloseOfAnEarlierOpeningMeansNothing) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  ASSERT_TRUE(harness_.log().Close().ok());
  const uint64_t word = *CleanCloseAddress(harness_.region());
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_TRUE(harness_.opened().was_closed_cleanly);
  harness_.Append("b");
  harness_.Drop();
  // The word is there as if it had never been taken away.
  *CleanCloseAddress(harness_.region()) = word;
  ASSERT_TRUE(harness_.Open().ok());
  EXPECT_FALSE(harness_.opened().was_closed_cleanly);
}

// Values that no log of this program writes, with checksums that hold.
TEST_F(LocalOpeningTest, ContradictionsWithRightChecksumsAreRefused) {
  ASSERT_TRUE(harness_.Open().ok());
  harness_.Append("a");
  ASSERT_TRUE(harness_.log().Close().ok());
  harness_.Drop();
  const std::vector<std::byte> image = Snapshot(harness_);
  const Superline good = ReadSuperline();
  constexpr uint64_t kHuge = ~uint64_t{0};
  const std::vector<std::function<void(Superline&)>> crafts = {
      [](Superline& s) { s.head_offset = RingOffset(8); },
      [](Superline& s) { s.head_offset = RingOffset(kHuge - 63); },
      [](Superline& s) { s.head_lsn = Lsn(0); },
      [](Superline& s) { s.head_lsn = Lsn(kHuge); },
      [](Superline& s) { s.ring_capacity = kHuge - 63; },
      [](Superline& s) { s.region_bytes = kHuge; },
      [](Superline& s) { s.promised_epoch = Epoch(kHuge); },
      [](Superline& s) { s.promised_epoch = Epoch(0); },
      [](Superline& s) { s.log_epoch = Epoch(0); },
      [](Superline& s) { s.table_seq = kHuge; },
      [](Superline& s) { s.ceiling = s.ceiling + 1; },
      [](Superline& s) { s.ceiling = s.head_offset - kLineBytes; },
      [](Superline& s) {
        s.ceiling = s.head_offset + s.ring_capacity + kLineBytes;
      },
      [](Superline& s) { s.repairing = true; },
      [](Superline& s) {
        s.configuration.replica_count = 3;
        s.configuration.members.resize(3);
      }};
  for (size_t i = 0; i < crafts.size(); ++i) {
    harness_.pmem().Reset(image);
    Superline crafted = good;
    crafts[i](crafted);
    ASSERT_TRUE(WriteCell(harness_.pmem(), SuperlinePlace(harness_.region()), 0,
                          1000, EncodeSuperline(crafted)));
    const std::vector<std::byte> before = Snapshot(harness_);
    const absl::Status refused = harness_.Open();
    EXPECT_TRUE(refused.code() == Code::kDataLoss ||
                refused.code() == Code::kUnimplemented)
        << "craft " << i << ": " << refused;
    EXPECT_EQ(Snapshot(harness_), before);
  }
}

// Such a region can be read, but a log that goes on from there could not.
TEST_F(LocalOpeningTest, NumbersWithoutRoomToGoOnAreRefused) {
  const std::vector<std::byte> image = Snapshot(harness_);
  const Superline good = ReadSuperline();
  const std::vector<std::function<void(Superline&, uint64_t&)>> crafts = {
      [](Superline& s, uint64_t&) { s.head_lsn = Lsn(kLsnMax); },
      [](Superline& s, uint64_t&) {
        s.head_offset = RingOffset(kOffsetMax);
        s.ceiling = s.head_offset;
      },
      [](Superline& s, uint64_t&) { s.promised_epoch = Epoch(kNumberMax); },
      [](Superline&, uint64_t& seq) { seq = kNumberMax; }};
  for (size_t i = 0; i < crafts.size(); ++i) {
    harness_.pmem().Reset(image);
    Superline crafted = good;
    uint64_t seq = 1000;
    crafts[i](crafted, seq);
    ASSERT_TRUE(WriteCell(harness_.pmem(), SuperlinePlace(harness_.region()), 0,
                          seq, EncodeSuperline(crafted)));
    std::vector<std::byte> before = Snapshot(harness_);
    EXPECT_TRUE(ReadRegionState(before, "model").ok()) << "craft " << i;
    const absl::Status refused = harness_.Open();
    EXPECT_EQ(refused.code(), Code::kDataLoss) << "craft " << i;
    EXPECT_THAT(refused.message(), HasSubstr("beyond what any log reaches"));
    EXPECT_EQ(Snapshot(harness_), before);
  }
}

TEST_F(LocalOpeningTest, ReportCountsOnlyWhatIsStillThere) {
  ASSERT_TRUE(harness_.Open().ok());
  for (int i = 0; i < 5; ++i) harness_.Append("x");
  ASSERT_TRUE(harness_.Open(/*cleanup_through=*/Lsn(3)).ok());
  EXPECT_EQ(harness_.opened().scan.data_records, 2u);
}

TEST(FormatRegionTest, FailureAtEachFenceIsReported) {
  const Layout layout = *Layout::ForRing(1024, 16);
  for (uint64_t fence = 1;; ++fence) {
    ModelPersistence pmem(layout.region_bytes);
    Random random(1);
    pmem.FailFence(fence);
    const absl::Status formatted =
        FormatRegion(pmem, pmem.region(), layout, NewLocalIdentity(random));
    if (formatted.ok()) break;
    EXPECT_EQ(formatted.code(), Code::kUnavailable);
    // Either no log or a whole one.
    std::vector<std::byte> image = pmem.CutKeepingNone();
    const auto state = ReadRegionState(image, "model");
    if (!state.ok()) continue;
    EXPECT_THAT(state->table.entries(), IsEmpty());
  }
}

}  // namespace
}  // namespace alpheus::recovery
