// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/region_state.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "log/format/remedy.h"

namespace alpheus {
namespace {

// Number of reads: that many of 100 KiB far outlast an update of superline or
// table, which takes microseconds.
constexpr int kReadsOfSharedRegionMax = 100;

absl::Status Named(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(name, ": ", status.message()));
}

bool AllEqual(std::span<const std::byte> bytes, std::byte value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [value](std::byte b) { return b == value; });
}

absl::Status NoSuperline(std::span<const std::byte> region,
                         const std::string& name) {
  const auto start = region.first(kTableOffset);
  std::string seen = "neither copy can be read";
  if (AllEqual(start, std::byte{0})) {
    seen = "all bytes are zero: the region was never formatted, or was wiped";
  } else if (AllEqual(start, std::byte{0xff})) {
    seen = "all bytes are ones: the region was wiped";
  }
  return absl::DataLossError(absl::StrCat(
      name, ": no superline at offsets 0 and ", kSuperlineCopyBytes, ": ", seen,
      ". Nothing was changed. ", kRemedyOfDamage,
      ". Only if there never was a log: move it away and run `alpheus "
      "format`"));
}

absl::Status CheckHasFixedPart(std::span<const std::byte> region,
                               const std::string& name) {
  if (region.size() >= kTableOffset) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name, ": ", region.size(), " bytes, fewer than the ", kTableOffset,
      " of the fixed part: not a log region, or truncated. ", kRemedyOfDamage));
}

// Both lines as bytes: only the superline, which is read later, tells the log
// and epoch that they belong to (RGS1).
class WatermarkBytes {
 public:
  explicit WatermarkBytes(std::span<std::byte> region) {
    for (int line = 0; line < 2; ++line) {
      std::memcpy(lines_[line].data(), WatermarkLine(region, line), kLineBytes);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }

  WatermarkPair Decode(Uuid log_id) const {
    WatermarkPair pair;
    for (int line = 0; line < 2; ++line) {
      pair.lines[line] = DecodeWatermark(log_id, line, lines_[line].data());
    }
    return pair;
  }

 private:
  std::array<std::array<std::byte, kLineBytes>, 2> lines_;
};

absl::Status ReadSuperline(std::span<std::byte> region, const std::string& name,
                           RegionState* state) {
  state->superline_cell = ReadCell(SuperlinePlace(region));
  const CellState& cell = state->superline_cell;
  if (!cell.newest) return NoSuperline(region, name);
  absl::StatusOr<Superline> decoded =
      DecodeSuperline(cell.copies[*cell.newest].content);
  if (!decoded.ok()) return Named(name, decoded.status());
  state->superline = *std::move(decoded);
  if (absl::Status fits = CheckGeometry(region, state->superline); !fits.ok()) {
    return Named(name, fits);
  }
  const int other = 1 - *cell.newest;
  if (!cell.copies[other].valid) {
    state->single_faults.push_back(absl::StrCat(
        "superline copy ", other, " at offset ",
        static_cast<uint64_t>(other) * kSuperlineCopyBytes, " can't be read"));
  }
  return absl::OkStatus();
}

// Returns the copy that holds, or -1.
int ChooseTableCopy(const CellState& cell, uint64_t seq, ReadingMode mode) {
  for (int i = 1; i >= 0; --i) {
    if (cell.copies[i].valid && cell.copies[i].seq == seq) return i;
  }
  return mode == ReadingMode::kSalvage ? cell.newest.value_or(-1) : -1;
}

absl::Status ReadEpochTable(std::span<std::byte> region,
                            const std::string& name, ReadingMode mode,
                            RegionState* state) {
  const CellPlace place = EpochTablePlace(region, state->superline);
  state->table_cell = ReadCell(place);
  const uint64_t seq = state->superline.table_seq;
  state->table_copy = ChooseTableCopy(state->table_cell, seq, mode);
  if (state->table_copy < 0) {
    return absl::DataLossError(absl::StrCat(
        name, ": no copy of epoch table ", seq,
        ", which the superline names, "
        "can be read (offsets ",
        kTableOffset, " and ", kTableOffset + place.capacity_bytes,
        "). Without its nonces no record can be verified. ", kRemedyOfDamage));
  }
  absl::StatusOr<EpochTable> table =
      EpochTable::Decode(state->superline.log_id,
                         state->table_cell.copies[state->table_copy].content);
  if (!table.ok()) return Named(name, table.status());
  state->table = *std::move(table);
  const int other = 1 - state->table_copy;
  if (!state->table_cell.copies[other].valid) {
    state->single_faults.push_back(absl::StrCat(
        "epoch table copy ", other, " at offset ",
        kTableOffset + static_cast<uint64_t>(other) * place.capacity_bytes,
        " can't be read"));
  }
  return absl::OkStatus();
}

absl::Status TakeWatermarks(const WatermarkBytes& bytes,
                            const std::string& name, ReadingMode mode,
                            RegionState* state) {
  state->watermarks = bytes.Decode(state->superline.log_id);
  if (state->watermarks.both_bad() && mode == ReadingMode::kExact) {
    return absl::DataLossError(absl::StrCat(
        name, ": neither watermark line can be read (offsets ",
        kWatermarkOffset, " and ", kWatermarkOffset + kPageBytes,
        "); a power cut damages at most one. Where the log ended is unknown. "
        "`alpheus salvage` reads the records that are left. ",
        kRemedyOfDamage));
  }
  for (int line = 0; line < 2; ++line) {
    if (state->watermarks.lines[line]) continue;
    state->single_faults.push_back(absl::StrCat(
        "watermark line ", line, " at offset ",
        kWatermarkOffset + static_cast<uint64_t>(line) * kPageBytes,
        " can't be read"));
  }
  return absl::OkStatus();
}

bool IsPosition(Lsn lsn, RingOffset offset) {
  return lsn.value >= 1 && lsn.value <= kLsnMax && offset.value <= kOffsetMax &&
         offset.value % kLineBytes == 0;
}

// SUP5.
bool HasPossibleCeiling(const Superline& superline) {
  const RingOffset head = superline.head_offset;
  return head <= superline.ceiling &&
         superline.ceiling <= head + superline.ring_capacity &&
         superline.ceiling.value % kLineBytes == 0;
}

// Checksums keep out accidents, not a region that was made to look right.
absl::Status CheckConsistency(const std::string& name, ReadingMode mode,
                              const RegionState& state) {
  const Superline& superline = state.superline;
  const std::vector<EpochEntry>& entries = state.table.entries();
  std::string wrong;
  if (!IsPosition(superline.head_lsn, superline.head_offset)) {
    wrong = absl::StrCat("head LSN ", superline.head_lsn.value, " at offset ",
                         superline.head_offset.value);
  } else if (superline.log_epoch > superline.promised_epoch ||
             superline.promised_epoch.value > kNumberMax) {
    wrong =
        absl::StrCat("log epoch ", superline.log_epoch.value,
                     " with promised epoch ", superline.promised_epoch.value);
  } else if (!HasPossibleCeiling(superline)) {
    wrong = absl::StrCat("a ceiling at offset ", superline.ceiling.value,
                         " with the head at ", superline.head_offset.value,
                         " in a ring of ", superline.ring_capacity, " bytes");
  } else if (superline.table_seq > kNumberMax ||
             state.superline_cell.copies[*state.superline_cell.newest].seq >
                 kNumberMax) {
    wrong = "a copy's number";
  } else if (mode == ReadingMode::kExact &&
             (entries.empty() ? Epoch(0) : entries.back().epoch) !=
                 superline.log_epoch) {
    wrong = absl::StrCat("an epoch table that does not end with the log epoch ",
                         superline.log_epoch.value);
  }
  for (const EpochEntry& entry : entries) {
    if (IsPosition(entry.start_lsn, entry.start_offset)) continue;
    wrong = absl::StrCat("start of epoch ", entry.epoch.value);
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(name, ": ", wrong,
                   " can't be, though its checksum holds: not written by "
                   "this program, or by a faulty one. ",
                   kRemedyOfDamage));
}

}  // namespace

Lsn RegionState::ProvenLsn() const {
  Lsn proven = watermarks.Proven(superline.log_epoch);
  if (!table.entries().empty()) {
    proven = std::max(proven, table.entries().back().start_lsn - 1);
  }
  return proven;
}

LogPosition RegionState::proven_place() const {
  const LogPosition from = head();
  const Watermark* const mark = watermarks.Latest(superline.log_epoch);
  if (mark == nullptr || mark->lsn <= from.lsn) return from;
  const RingOffset offset = mark->place.offset;
  // Each record takes a line at least.
  const bool is_possible =
      offset > from.offset && offset < superline.ceiling &&
      offset.value % kLineBytes == 0 &&
      mark->lsn - from.lsn <= (offset - from.offset) / kLineBytes;
  if (!is_possible) return from;
  return {mark->lsn, offset, mark->place.chain};
}

absl::StatusOr<RegionState> ReadRegionState(std::span<std::byte> region,
                                            const std::string& name,
                                            ReadingMode mode) {
  ALPHEUS_RETURN_IF_ERROR(CheckHasFixedPart(region, name));
  RegionState state;
  WatermarkBytes watermarks(region);
  ALPHEUS_RETURN_IF_ERROR(ReadSuperline(region, name, &state));
  ALPHEUS_RETURN_IF_ERROR(ReadEpochTable(region, name, mode, &state));
  ALPHEUS_RETURN_IF_ERROR(TakeWatermarks(watermarks, name, mode, &state));
  ALPHEUS_RETURN_IF_ERROR(CheckConsistency(name, mode, state));
  const uint64_t seq =
      state.superline_cell.copies[*state.superline_cell.newest].seq;
  state.closed_cleanly =
      *CleanCloseAddress(region) == CleanCloseWord(state.superline.log_id, seq);
  return state;
}

absl::StatusOr<RegionState> ReadSharedRegionState(
    std::span<std::byte> region, const std::string& name, ReadingMode mode,
    absl::FunctionRef<bool()> has_writer) {
  bool had_writer = true;  // not asked yet
  absl::StatusOr<RegionState> state;
  for (int read = 0; read < kReadsOfSharedRegionMax; ++read) {
    state = ReadRegionState(region, name, mode);
    if (state.ok()) return state;
    const bool has_one = has_writer();
    if (!had_writer && !has_one) return state;
    had_writer = has_one;
  }
  // Formatting writes the superline last.
  if (region.size() >= kTableOffset &&
      AllEqual(region.first(kWatermarkOffset), std::byte{0})) {
    return absl::UnavailableError(absl::StrCat(
        name,
        ": it is being formatted; read it when that is done. If a log is open "
        "there, its superline was wiped: restore the region from a copy"));
  }
  return state;
}

ScanInput ScanInputOf(std::span<std::byte> region, const RegionState& state,
                      FileView file) {
  ScanInput input;
  input.ring = RingOf(region, state.superline);
  input.file = file;
  input.ring_begin = state.superline.ring_offset;
  input.table = &state.table;
  input.head = state.head();
  input.start = input.head;
  input.ceiling = input.head.offset + input.ring.capacity();
  input.proven_lsn = state.ProvenLsn();
  return input;
}

ScanInput OpeningScanOf(std::span<std::byte> region, const RegionState& state,
                        FileView file, uint64_t read_whole_bytes_max) {
  ScanInput input = ScanInputOf(region, state, file);
  const LogPosition place = state.proven_place();
  if (place.offset - input.head.offset > read_whole_bytes_max) {
    input.start = place;
  }
  input.ceiling = state.superline.ceiling;
  return input;
}

}  // namespace alpheus
