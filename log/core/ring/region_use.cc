// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/region_use.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/status/statusor.h"
#include "log/core/ring/format_region.h"
#include "log/format/atomic_cell.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/format/watermark.h"

namespace alpheus {
namespace {

bool AreZeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(
      bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// Use of a region whose superline can be read.
RegionUse UseOfLog(const CellState& superline) {
  const absl::StatusOr<Superline> decoded =
      DecodeSuperline(superline.copies[*superline.newest].content);
  const bool is_unopened =
      decoded.ok() && decoded->promised_epoch == Epoch(0) &&
      decoded->log_epoch == Epoch(0) && decoded->deletion == Deletion::kNone;
  return is_unopened ? RegionUse::kUnopened : RegionUse::kUsed;
}

// Returns whether epoch table and ring are unused: no entries, or no table.
bool IsRestUnused(std::span<const std::byte> region) {
  const absl::StatusOr<Layout> layout = Layout::ForRegion(region.size());
  if (!layout.ok()) return AreZeros(region.subspan(kTableOffset));
  for (uint64_t copy = 0; copy < 2; ++copy) {
    const auto table = region.subspan(
        kTableOffset + copy * layout->table_copy_bytes, sizeof(CellHeader));
    CellHeader header;
    std::memcpy(&header, table.data(), sizeof(header));
    if (header.seq > 1) return false;
  }
  return AreZeros(region.subspan(layout->ring_offset));
}

}  // namespace

RegionUse UseOfRegion(std::span<std::byte> region, bool is_device) {
  if (region.size() < kTableOffset) {
    return AreZeros(region) ? RegionUse::kNothing : RegionUse::kUsed;
  }
  const CellState superline = ReadCell(SuperlinePlace(region));
  if (superline.newest) return UseOfLog(superline);
  if (!AreZeros(region.subspan(kSuperlineCopyBytes, kSuperlineCopyBytes))) {
    return RegionUse::kUsed;
  }
  for (int line = 0; line < 2; ++line) {
    WatermarkFormat watermark;
    std::memcpy(&watermark, WatermarkLine(region, line), sizeof(watermark));
    if (watermark.lsn != 0 || watermark.epoch != 0) return RegionUse::kUsed;
  }
  if (is_device) return RegionUse::kNothing;
  return IsRestUnused(region) ? RegionUse::kNothing : RegionUse::kUsed;
}

RegionUse UseOfRemoved(std::span<std::byte> region, bool is_device) {
  if (is_device || region.size() != LayoutOfRemoved().region_bytes) {
    return UseOfRegion(region, is_device);
  }
  const CellState superline = ReadCell(SuperlinePlace(region));
  if (!superline.newest) return RegionUse::kNothing;
  const absl::StatusOr<Superline> decoded =
      DecodeSuperline(superline.copies[*superline.newest].content);
  return decoded.ok() && decoded->deletion == Deletion::kDecided
             ? RegionUse::kUnopened
             : RegionUse::kUsed;
}

}  // namespace alpheus
