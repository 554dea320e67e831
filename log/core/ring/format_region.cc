// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/format_region.h"

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

// Watermarks of a new log prove nothing.
template <Persistence P>
absl::Status WriteEmpty(P& pmem, std::span<std::byte> region,
                        const Superline& superline) {
  const EpochTable table = EpochTable::Empty(superline.log_id);
  if (!WriteCell(pmem, EpochTablePlace(region, superline), std::nullopt,
                 superline.table_seq, table.Encode())) {
    return pmem.Error();
  }
  for (int line = 0; line < 2; ++line) {
    const WatermarkFormat watermark =
        EncodeWatermark(superline.log_id, line, Watermark{});
    pmem.CopyLinesNt(WatermarkLine(region, line), &watermark, 1);
  }
  if (!pmem.Fence()) return pmem.Error();
  if (!WriteCell(pmem, SuperlinePlace(region), std::nullopt, /*seq=*/1,
                 EncodeSuperline(superline))) {
    return pmem.Error();
  }
  return absl::OkStatus();
}

}  // namespace

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
  return WriteEmpty(pmem, region, superline);
}

template <Persistence P>
absl::Status FormatRemoved(P& pmem, std::span<std::byte> region,
                           const Superline& of) {
  const Layout layout = LayoutOfRemoved();
  Superline superline = of;
  superline.region_bytes = layout.region_bytes;
  superline.ring_offset = layout.ring_offset;
  superline.ring_capacity = layout.ring_capacity;
  superline.table_capacity = layout.table_capacity;
  superline.log_epoch = Epoch();
  superline.table_seq = 1;
  superline.head_lsn = Lsn(1);
  superline.head_offset = RingOffset();
  superline.head_chain = 0;
  superline.repairing = false;
  superline.ceiling = RingOffset();
  superline.deletion = Deletion::kDecided;
  return WriteEmpty(pmem, region, superline);
}

#define ALPHEUS_INSTANTIATE(P)                                                 \
  template absl::Status FormatRegion<P>(P&, std::span<std::byte>,              \
                                        const Layout&, const FormatIdentity&); \
  template absl::Status FormatRemoved<P>(P&, std::span<std::byte>,             \
                                         const Superline&)
ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);
#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
