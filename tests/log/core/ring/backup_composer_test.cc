// SPDX-License-Identifier: Apache-2.0
// Regions that a backup composes, as a scan and an opening find them. The bytes
// that the composer gives are put in any order; what is never given is zero.
#include "log/core/ring/backup_composer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/base/random.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/pmem/libpmem_persistence.h"
#include "recovery/replica/local_opening.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kRingBytes = 16 * kLineBytes;
constexpr Uuid kLog{3, 4};

struct Kept {
  uint64_t lsn = 0;
  uint64_t epoch = 0;
  std::string payload;  // "-": aborted
  auto operator<=>(const Kept&) const = default;
};
void PrintTo(const Kept& kept, std::ostream* to) {
  *to << kept.lsn << " of epoch " << kept.epoch << ": " << kept.payload;
}

class BackupComposerTest : public ::testing::Test {
 protected:
  static BackupSubject Subject(uint64_t head, uint64_t end,
                               std::vector<EpochStart> epochs) {
    return {kLog, kRingBytes, Lsn(head), Lsn(end), std::move(epochs)};
  }
  absl::StatusOr<BackupComposer> Begin(BackupSubject subject) {
    return BackupComposer::Begin(std::move(subject), random_);
  }
  // Composes all of these records. The last piece is at offset 0.
  void Compose(BackupSubject subject, const std::vector<Kept>& records) {
    absl::StatusOr<BackupComposer> composer = Begin(std::move(subject));
    ASSERT_TRUE(composer.ok()) << composer.status();
    // Aligned to pages, as mapped memory is.
    bytes_.assign(composer->region_bytes() / kPageBytes + 1, Page());
    for (const Kept& record : records) {
      const absl::Status added = composer->Add(
          Lsn(record.lsn), Epoch(record.epoch), AsBytes(record.payload), sink_);
      ASSERT_TRUE(added.ok()) << added;
    }
    const absl::Status finished = composer->Finish(sink_);
    ASSERT_TRUE(finished.ok()) << finished;
    region_bytes_ = composer->region_bytes();
    EXPECT_EQ(pieces_.back().offset, 0U);  // BKC5
  }
  std::span<std::byte> region() { return {bytes_.front().byte, region_bytes_}; }
  RegionState State() {
    auto state = ReadRegionState(region(), "backup");
    EXPECT_TRUE(state.ok()) << state.status();
    return *state;
  }
  // Scans all, and expects the end of a whole log.
  std::vector<Kept> Scan() {
    const RegionState state = State();
    EXPECT_TRUE(state.single_faults.empty());
    EXPECT_TRUE(state.closed_cleanly);
    std::vector<Kept> kept;
    const ScanResult scan = ScanLog(
        ScanInputOf(region(), state),
        [&kept](const LogPosition&, const RecordView& record) {
          kept.push_back(
              {record.lsn().value, record.epoch().value,
               record.aborted() ? "-" : std::string(AsText(record.payload))});
        });
    EXPECT_EQ(scan.verdict, TailVerdict::kComplete);
    EXPECT_EQ(scan.end.lsn, state.superline.head_lsn + kept.size());
    EXPECT_TRUE(scan.damaged_pads.empty());
    return kept;
  }
  absl::Status Open() {
    LibpmemPersistence pmem({});
    Random random(7);
    return recovery::OpenEpochLocally(pmem, region(), {.name = "backup"},
                                      random)
        .status();
  }

  struct alignas(kPageBytes) Page {
    std::byte byte[kPageBytes] = {};
  };

  Random random_{5};
  std::vector<Page> bytes_;
  uint64_t region_bytes_ = 0;
  struct Piece {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> pieces_;
  std::function<absl::Status(uint64_t, std::span<const std::byte>)> sink_ =
      [this](uint64_t offset, std::span<const std::byte> bytes) {
        pieces_.push_back({offset, {bytes.begin(), bytes.end()}});
        std::memcpy(bytes_.front().byte + offset, bytes.data(), bytes.size());
        return absl::OkStatus();
      };
};

TEST_F(BackupComposerTest, RecordsAreAtTheirLsnsInTheirEpochs) {
  const std::vector<Kept> records = {
      {5, 2, "five"}, {6, 2, ""}, {7, 9, "seven"}};
  Compose(Subject(5, 7, {{Epoch(2), Lsn(3)}, {Epoch(9), Lsn(7)}}), records);
  EXPECT_EQ(Scan(), records);
  const RegionState state = State();
  EXPECT_EQ(state.superline.log_id, kLog);
  EXPECT_EQ(state.superline.log_epoch, Epoch(9));
  ASSERT_EQ(state.table.entries().size(), 2U);
  EXPECT_EQ(state.table.entries()[0].start_lsn, Lsn(3));
  EXPECT_EQ(state.table.entries()[1].start_lsn, Lsn(7));
  EXPECT_EQ(state.ProvenLsn(), Lsn(7));
  EXPECT_EQ(state.proven_place().lsn, Lsn(7));
}

// Goal: BKC1. Gaps at the head, in the middle, at the start of an epoch and at
// the end.
TEST_F(BackupComposerTest, LsnsWithoutARecordAreAborted) {
  Compose(Subject(1, 6, {{Epoch(1), Lsn(1)}, {Epoch(2), Lsn(4)}}),
          {{2, 1, "two"}, {5, 2, "five"}});
  EXPECT_THAT(Scan(), ElementsAre(Kept{1, 1, "-"}, Kept{2, 1, "two"},
                                  Kept{3, 1, "-"}, Kept{4, 2, "-"},
                                  Kept{5, 2, "five"}, Kept{6, 2, "-"}));
}

TEST_F(BackupComposerTest, EmptyLogsHaveAHeadAndAnEpoch) {
  Compose(Subject(1, 0, {}), {});
  EXPECT_THAT(Scan(), IsEmpty());
  EXPECT_EQ(State().superline.log_epoch, Epoch(0));
  // All were cleaned, in a log whose last opening wrote nothing.
  Compose(Subject(40, 39, {{Epoch(3), Lsn(7)}, {Epoch(8), Lsn(40)}}), {});
  EXPECT_THAT(Scan(), IsEmpty());
  EXPECT_EQ(State().superline.head_lsn, Lsn(40));
  EXPECT_EQ(State().superline.log_epoch, Epoch(8));
  EXPECT_EQ(State().table.entries().size(), 1U);
}

// An epoch that began after the end has no part in the backup; one that begins
// right behind it is the log's.
TEST_F(BackupComposerTest, EpochsThatOwnNoneOfTheRecordsAreLeftOut) {
  Compose(Subject(5, 5,
                  {{Epoch(1), Lsn(1)},
                   {Epoch(2), Lsn(3)},
                   {Epoch(3), Lsn(5)},
                   {Epoch(4), Lsn(6)},
                   {Epoch(5), Lsn(7)}}),
          {{5, 3, "five"}});
  EXPECT_THAT(Scan(), ElementsAre(Kept{5, 3, "five"}));
  const RegionState state = State();
  ASSERT_EQ(state.table.entries().size(), 2U);
  EXPECT_EQ(state.table.entries()[0].epoch, Epoch(3));
  EXPECT_EQ(state.table.entries()[1].epoch, Epoch(4));
  EXPECT_EQ(state.ProvenLsn(), Lsn(5));
}

// A ring that was full has no PAD in its backup, and fits.
TEST_F(BackupComposerTest, RecordsFillTheRingToItsEdge) {
  std::vector<Kept> records;
  const uint64_t per_record = 4 * kLineBytes - kRecordHeaderBytes;
  for (uint64_t lsn = 10; lsn < 14; ++lsn) {
    records.push_back({lsn, 1, std::string(per_record, 'a')});
  }
  Compose(Subject(10, 13, {{Epoch(1), Lsn(1)}}), records);
  EXPECT_EQ(Scan(), records);
  EXPECT_EQ(State().superline.ceiling,
            State().superline.head_offset + kRingBytes);
}

// Goal: BKC2. Two backups of one log have no record in common, and none has the
// log's.
TEST_F(BackupComposerTest, EachBackupHasChecksumsOfItsOwn) {
  const auto header = [this] {
    const RegionState state = State();
    const Ring ring = RingOf(region(), state.superline);
    return LoadHeader(ring.At(state.superline.head_offset));
  };
  Compose(Subject(1, 1, {{Epoch(1), Lsn(1)}}), {{1, 1, "one"}});
  const HeaderWords first = header();
  Compose(Subject(1, 1, {{Epoch(1), Lsn(1)}}), {{1, 1, "one"}});
  EXPECT_NE(first.header_crc(), header().header_crc());
  EXPECT_NE(first.payload_crc(), header().payload_crc());
}

// Goal: BKC3.
TEST_F(BackupComposerTest, BackupsAreNotOpened) {
  Compose(Subject(1, 1, {{Epoch(1), Lsn(1)}}), {{1, 1, "one"}});
  EXPECT_TRUE(IsBackup(State().superline));
  const std::vector<std::byte> before(region().begin(), region().end());
  const absl::Status opened = Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(opened)) << opened;
  EXPECT_THAT(opened.message(), HasSubstr("is a backup of log"));
  EXPECT_TRUE(std::ranges::equal(region(), before));
}

// Goal: BKC4. Each byte of the last record, flipped, is damage and no torn end.
TEST_F(BackupComposerTest, DamageOfTheLastRecordIsFound) {
  Compose(Subject(1, 2, {{Epoch(1), Lsn(1)}}), {{1, 1, "one"}, {2, 1, "two!"}});
  const RegionState state = State();
  const Ring ring = RingOf(region(), state.superline);
  std::byte* const record = ring.At(state.superline.head_offset + kLineBytes);
  for (size_t i = 0; i < kRecordHeaderBytes + 4; ++i) {
    if (i >= offsetof(RecordHeader, cleaned) && i < kRecordHeaderBytes)
      continue;
    record[i] ^= std::byte{4};
    EXPECT_EQ(ScanLog(ScanInputOf(region(), state)).verdict,
              TailVerdict::kCorrupt)
        << i;
    record[i] ^= std::byte{4};
  }
}

// Goal: BKC5. Method: the pieces are put one after the other, and the region is
// read after each. Between the two copies of the superline it is all there but
// one copy, and says so.
TEST_F(BackupComposerTest, PiecesBeforeTheSuperlineAreNoRegion) {
  Compose(Subject(1, 2, {{Epoch(1), Lsn(1)}}), {{1, 1, "one"}, {2, 1, "two"}});
  bytes_.assign(bytes_.size(), Page());
  size_t regions = 0;
  for (const Piece& piece : pieces_) {
    std::memcpy(bytes_.front().byte + piece.offset, piece.bytes.data(),
                piece.bytes.size());
    const auto state = ReadRegionState(region(), "backup");
    EXPECT_EQ(state.ok(), piece.offset < 2 * kSuperlineCopyBytes)
        << piece.offset;
    if (!state.ok()) continue;
    EXPECT_EQ(state->single_faults.empty(), piece.offset == 0) << piece.offset;
    ++regions;
  }
  EXPECT_EQ(regions, 2U);
}

TEST_F(BackupComposerTest, OtherRecordsThanAreNextAreRefused) {
  absl::StatusOr<BackupComposer> composer =
      Begin(Subject(3, 6, {{Epoch(1), Lsn(1)}, {Epoch(2), Lsn(5)}}));
  ASSERT_TRUE(composer.ok()) << composer.status();
  bytes_.assign(composer->region_bytes() / kPageBytes + 1, Page());
  const auto add = [&](uint64_t lsn, uint64_t epoch, size_t bytes = 1) {
    return composer->Add(Lsn(lsn), Epoch(epoch),
                         AsBytes(std::string(bytes, 'x')), sink_);
  };
  EXPECT_THAT(add(2, 1).message(), HasSubstr("LSN 2 came where LSN 3 is next"));
  EXPECT_THAT(add(7, 2).message(), HasSubstr("LSN 7 came where LSN 3 is next"));
  EXPECT_THAT(add(3, 2).message(), HasSubstr("but epoch 1 owns it"));
  EXPECT_THAT(add(3, 1, kRingBytes).message(), HasSubstr("does not fit"));
  EXPECT_TRUE(add(3, 1).ok());
  EXPECT_THAT(add(5, 1).message(), HasSubstr("but epoch 2 owns it"));
}

TEST_F(BackupComposerTest, LogsThatCanNotBeAreRefused) {
  const auto why = [this](const BackupSubject& subject) {
    const absl::Status status = Begin(subject).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(why(Subject(0, 0, {})), HasSubstr("such a head"));
  EXPECT_THAT(why(Subject(5, 3, {})), HasSubstr("such a head"));
  EXPECT_THAT(why(Subject(5, kLsnMax + 1, {})), HasSubstr("such a head"));
  EXPECT_THAT(why(Subject(5, 5, {})), HasSubstr("no epoch owns"));
  EXPECT_THAT(why(Subject(5, 5, {{Epoch(1), Lsn(6)}})),
              HasSubstr("no epoch owns"));
  EXPECT_THAT(why(Subject(1, 5, {{Epoch(2), Lsn(1)}, {Epoch(2), Lsn(3)}})),
              HasSubstr("epoch 2 is not after"));
  EXPECT_THAT(
      why(Subject(
          1, 5, {{Epoch(1), Lsn(1)}, {Epoch(2), Lsn(4)}, {Epoch(3), Lsn(3)}})),
      HasSubstr("epoch 3 is not after"));
  std::vector<EpochStart> many;
  for (uint64_t i = 1; i <= kEpochTableCapacity + 1; ++i) {
    many.push_back({Epoch(i), Lsn(i)});
  }
  EXPECT_THAT(why(Subject(1, many.size(), many)), HasSubstr("1025 epochs"));
  BackupSubject odd = Subject(1, 0, {});
  odd.ring_capacity = 100;
  EXPECT_THAT(why(odd), HasSubstr("100"));
}

// An error of the sink ends the composing, wherever it comes.
TEST_F(BackupComposerTest, ErrorsOfTheSinkAreReturned) {
  const auto fails_at = [this](int piece) {
    absl::StatusOr<BackupComposer> composer =
        Begin(Subject(1, 3, {{Epoch(1), Lsn(1)}}));
    int pieces = 0;
    const auto sink = [&](uint64_t, std::span<const std::byte>) {
      return pieces++ == piece ? absl::DataLossError("the sink")
                               : absl::OkStatus();
    };
    absl::Status status =
        composer->Add(Lsn(2), Epoch(1), AsBytes(std::string("two")), sink);
    if (status.ok()) status = composer->Finish(sink);
    return std::pair(status, pieces);
  };
  for (int piece = 0;; ++piece) {
    const auto [status, pieces] = fails_at(piece);
    if (status.ok()) {
      EXPECT_GT(piece, 5);  // three records, table, watermarks, superlines
      break;
    }
    EXPECT_EQ(status, absl::DataLossError("the sink")) << piece;
    EXPECT_EQ(pieces, piece + 1);
  }
}

}  // namespace
}  // namespace alpheus
