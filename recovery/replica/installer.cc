// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/installer.h"

#include <algorithm>
#include <vector>

#include "log/base/status_macros.h"
#include "log/core/write/record_writer.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/pmem/backends.h"

namespace alpheus::recovery {

template <Persistence P>
void Installer<P>::FlushBeforeRing() {
  pmem_.Flush(region_.data(), state_.superline.ring_offset);
}

template <Persistence P>
void Installer<P>::FlushRing(RingOffset begin, RingOffset end) {
  const Ring ring = RingOf(region_, state_.superline);
  const uint64_t bytes = end - begin;
  const uint64_t until_end = ring.UntilEnd(begin);
  pmem_.Flush(ring.At(begin), std::min(bytes, until_end));
  if (bytes > until_end) pmem_.Flush(ring.data(), bytes - until_end);
}

template <Persistence P>
void Installer<P>::RewritePads(const EpochTable& table,
                               std::span<const DamagedPad> pads) {
  const Ring ring = RingOf(region_, state_.superline);
  for (const DamagedPad& pad : pads) {
    const EpochEntry* owner = table.Owner(pad.next_lsn);
    WritePad(pmem_, ring, table.KeyOf(owner), owner->epoch, pad.next_lsn,
             Lsn(0), pad.offset);
    pmem_.Flush(ring.At(pad.offset), kRecordHeaderBytes);
  }
}

template <Persistence P>
absl::Status Installer<P>::UnmarkCleanClose() {
  uint64_t* word = CleanCloseAddress(region_);
  pmem_.Store8(word, 0);
  return Fenced(Persist(pmem_, word, sizeof(*word)));
}

template <Persistence P>
absl::Status Installer<P>::WriteSuperline(const Superline& superline,
                                          uint64_t seq) {
  return Fenced(WriteCell(pmem_, SuperlinePlace(region_),
                          state_.superline_cell.newest, seq,
                          EncodeSuperline(superline)));
}

template <Persistence P>
absl::Status Installer<P>::InstallEpoch(const EpochTable& table,
                                        const Superline& superline,
                                        uint64_t superline_seq) {
  const CellPlace place = EpochTablePlace(region_, superline);
  const int first = 1 - state_.table_copy;
  const std::vector<std::byte> content = table.Encode();
  ALPHEUS_RETURN_IF_ERROR(
      Fenced(WriteCellCopy(pmem_, place, first, superline.table_seq, content)));
  ALPHEUS_RETURN_IF_ERROR(WriteSuperline(superline, superline_seq));
  return Fenced(
      WriteCellCopy(pmem_, place, 1 - first, superline.table_seq, content));
}

template <Persistence P>
absl::Status Installer<P>::RepairTable() {
  return Fenced(WriteCellCopy(pmem_, EpochTablePlace(region_, state_.superline),
                              1 - state_.table_copy, state_.superline.table_seq,
                              state_.table.Encode()));
}

template <Persistence P>
absl::Status Installer<P>::RenewWatermarks(const Watermark& watermark) {
  const int first = state_.watermarks.NextLine(watermark.epoch);
  for (const int line : {first, 1 - first}) {
    const WatermarkFormat format =
        EncodeWatermark(state_.superline.log_id, line, watermark);
    pmem_.CopyLinesNt(WatermarkLine(region_, line), &format, 1);
    ALPHEUS_RETURN_IF_ERROR(Fence());
  }
  return absl::OkStatus();
}

ALPHEUS_INSTANTIATE_CLASS(Installer);

}  // namespace alpheus::recovery
