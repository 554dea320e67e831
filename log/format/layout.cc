// SPDX-License-Identifier: Apache-2.0
#include "log/format/layout.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "log/base/mix.h"
#include "log/format/remedy.h"

namespace alpheus {
namespace {

uint64_t TableCopyBytes(uint64_t table_capacity) {
  return RoundUp(kCellHeaderBytes + table_capacity * sizeof(EpochEntryFormat),
                 kPageBytes);
}

// The reserver counts lines in 40 bits (reserver.h).
constexpr uint64_t kRegionBytesMax = uint64_t{1} << 44;
constexpr uint64_t kTableCapacityMax = uint64_t{1} << 20;

}  // namespace

uint64_t PayloadBytesMax(uint64_t ring_capacity) {
  const uint64_t half = RoundDown(ring_capacity / 2, kLineBytes);
  return std::min<uint64_t>(half - kRecordHeaderBytes,
                            std::numeric_limits<uint32_t>::max());
}

absl::StatusOr<Layout> Layout::ForRing(uint64_t ring_capacity,
                                       uint64_t table_capacity) {
  if (ring_capacity < kRingCapacityMin || ring_capacity % kLineBytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ring capacity ", ring_capacity, " bytes: must be a multiple of ",
        kLineBytes, " and at least ", kRingCapacityMin));
  }
  if (table_capacity == 0 || table_capacity > kTableCapacityMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("epoch table capacity ", table_capacity,
                     " entries: must be 1 to ", kTableCapacityMax));
  }
  Layout layout;
  layout.table_capacity = table_capacity;
  layout.table_copy_bytes = TableCopyBytes(table_capacity);
  layout.ring_offset = kTableOffset + 2 * layout.table_copy_bytes;
  layout.ring_capacity = ring_capacity;
  layout.region_bytes = layout.ring_offset + ring_capacity;
  return layout;
}

absl::StatusOr<Layout> Layout::ForRegion(uint64_t region_bytes,
                                         uint64_t table_capacity) {
  const uint64_t ring_offset =
      kTableOffset + 2 * TableCopyBytes(table_capacity);
  const uint64_t minimum = ring_offset + kPageBytes;
  if (region_bytes < minimum) {
    return absl::InvalidArgumentError(
        absl::StrCat("region of ", region_bytes,
                     " bytes: too small for a log, the minimum is ", minimum));
  }
  return ForRing(RoundDown(region_bytes - ring_offset, kPageBytes),
                 table_capacity);
}

CellPlace SuperlinePlace(std::span<std::byte> region) {
  CellPlace place;
  place.capacity_bytes = kSuperlineCopyBytes;
  place.copies = {region.data(), region.data() + place.capacity_bytes};
  place.magic = kSuperlineMagic;
  return place;
}

CellPlace EpochTablePlace(std::span<std::byte> region,
                          const Superline& superline) {
  const uint64_t copy_bytes = TableCopyBytes(superline.table_capacity);
  CellPlace place;
  place.copies = {region.data() + kTableOffset,
                  region.data() + kTableOffset + copy_bytes};
  place.capacity_bytes = copy_bytes;
  place.magic = kEpochTableMagic;
  place.owner = Mix(superline.log_id.high, superline.log_id.low);
  return place;
}

uint64_t* CleanCloseAddress(std::span<std::byte> region) {
  return reinterpret_cast<uint64_t*>(region.data() + kWatermarkOffset +
                                     kLineBytes);
}

uint64_t CleanCloseWord(Uuid log_id, uint64_t superline_seq) {
  // Never 0, the value of an open log.
  return Mix(Mix(log_id.high, log_id.low), superline_seq) | 1;
}

Ring RingOf(std::span<std::byte> region, const Superline& superline) {
  return {region.data() + superline.ring_offset, superline.ring_capacity};
}

absl::Status CheckGeometry(std::span<const std::byte> region,
                           const Superline& superline) {
  // Bounded first, so that no sum overflows.
  const bool bounded = superline.ring_capacity <= superline.region_bytes &&
                       superline.region_bytes <= kRegionBytesMax;
  const absl::StatusOr<Layout> layout = Layout::ForRing(
      bounded ? superline.ring_capacity : 0, superline.table_capacity);
  if (!layout.ok() || layout->ring_offset != superline.ring_offset ||
      layout->region_bytes > superline.region_bytes) {
    return absl::DataLossError(
        absl::StrCat("superline: ring of ", superline.ring_capacity,
                     " bytes at offset ", superline.ring_offset,
                     " in a region of ", superline.region_bytes, " can't be"));
  }
  if (superline.region_bytes > region.size()) {
    return absl::DataLossError(absl::StrCat(
        "region was formatted with ", superline.region_bytes, " bytes but has ",
        region.size(),
        ": the file was truncated. `alpheus salvage` reads what is left. ",
        kRemedyOfDamage));
  }
  return absl::OkStatus();
}

WatermarkPair ReadWatermarks(std::span<std::byte> region, Uuid log_id) {
  WatermarkPair pair;
  for (int line = 0; line < 2; ++line) {
    pair.lines[line] =
        DecodeWatermark(log_id, line, WatermarkLine(region, line));
  }
  return pair;
}

}  // namespace alpheus
