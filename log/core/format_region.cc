// SPDX-License-Identifier: Apache-2.0
#include "log/core/format_region.h"

#include <algorithm>
#include <cstring>

#include "absl/status/statusor.h"
#include "log/format/atomic_cell.h"
#include "log/format/epoch_table.h"
#include "log/format/watermark.h"
#include "log/pmem/backends.h"

namespace alpheus {
namespace {

uint64_t IncarnationOf(const FormatIdentity& identity) {
  if (identity.incarnation != 0) return identity.incarnation;
  for (const Member& member : identity.configuration.members) {
    if (member.node == identity.node) return member.incarnation;
  }
  return 0;
}

bool AreZeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(
      bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// Use of a region whose superline can be read.
RegionUse UseOfLog(const CellState& superline) {
  const absl::StatusOr<Superline> decoded =
      DecodeSuperline(superline.copies[*superline.newest].content);
  const bool is_unopened = decoded.ok() &&
                           decoded->promised_epoch == Epoch(0) &&
                           decoded->log_epoch == Epoch(0);
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

FormatIdentity NewLocalIdentity(RandomSource& random) {
  FormatIdentity identity;
  identity.cluster_id = {random.Next(), random.Next()};
  identity.log_id = {random.Next(), random.Next()};
  identity.configuration.members = {{identity.node, random.Next()}};
  return identity;
}

template <Persistence P>
absl::Status FormatRegion(P& pmem, std::span<std::byte> region,
                          const Layout& layout,
                          const FormatIdentity& identity) {
  Superline superline;
  superline.cluster_id = identity.cluster_id;
  superline.log_id = identity.log_id;
  superline.node = identity.node;
  superline.incarnation = IncarnationOf(identity);
  superline.region_bytes = layout.region_bytes;
  superline.ring_offset = layout.ring_offset;
  superline.ring_capacity = layout.ring_capacity;
  superline.table_capacity = layout.table_capacity;
  superline.configuration = identity.configuration;
  superline.table_seq = 1;

  const EpochTable table = EpochTable::Empty(identity.log_id);
  if (!WriteCell(pmem, EpochTablePlace(region, superline), std::nullopt,
                 superline.table_seq, table.Encode())) {
    return pmem.Error();
  }
  for (int line = 0; line < 2; ++line) {
    const WatermarkFormat watermark =
        EncodeWatermark(identity.log_id, line, Watermark{});
    pmem.CopyLinesNt(WatermarkLine(region, line), &watermark, 1);
  }
  if (!pmem.Fence()) return pmem.Error();
  if (!WriteCell(pmem, SuperlinePlace(region), std::nullopt, /*seq=*/1,
                 EncodeSuperline(superline))) {
    return pmem.Error();
  }
  return absl::OkStatus();
}

#define ALPHEUS_INSTANTIATE(P)                                    \
  template absl::Status FormatRegion<P>(P&, std::span<std::byte>, \
                                        const Layout&, const FormatIdentity&)
ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);
#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
