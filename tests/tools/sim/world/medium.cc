// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/sim/world/medium.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include "log/base/check.h"
#include "log/core/write/record_writer.h"
#include "log/format/layout.h"

namespace alpheus::sim {
RegionState Medium::State() const {
  return *ReadRegionState(pmem().region(), "medium");
}

RecordView Medium::FirstRecord() const {
  const RegionState state = State();
  const Ring ring = RingOf(pmem().region(), state.superline);
  RecordCursor cursor(ring, state.table, state.head(),
                      state.head().offset + ring.capacity());
  ALPHEUS_CHECK(cursor.Next() == RecordCursor::Step::kRecord,
                "there is a record at the head");
  return cursor.record();
}

const std::byte* Medium::BytesOf(const RecordView& record) const {
  return RingOf(pmem().region(), superline()).At(record.offset);
}

uint64_t Medium::seq() const {
  const CellState cell = State().superline_cell;
  return cell.copies[*cell.newest].seq;
}

void Medium::Change(const std::function<void(Superline&)>& change) {
  Superline changed = superline();
  change(changed);
  WriteSuperline(changed, seq() + 1);
}

void Medium::WriteSuperline(const Superline& superline, uint64_t seq) {
  WriteOneCopy(0, superline, seq);
  WriteOneCopy(1, superline, seq);
}

void Medium::WriteOneCopy(int copy, const Superline& superline, uint64_t seq) {
  ASSERT_TRUE(WriteCellCopy(pmem(), SuperlinePlace(pmem().region()), copy, seq,
                            EncodeSuperline(superline)));
}

void Medium::Promise(const alpheus::quorum::Promise& promise) {
  Change([&](Superline& superline) {
    superline.promised_epoch = promise.epoch;
    superline.promised_node = promise.primary.node;
    superline.promised_incarnation = promise.primary.incarnation;
  });
}

void Medium::ChangeWithTable(const EpochTable& table,
                             const std::function<void(Superline&)>& change) {
  Superline changed = superline();
  const uint64_t number = seq() + 1;
  ASSERT_TRUE(WriteCell(pmem(), EpochTablePlace(pmem().region(), changed),
                        /*newest=*/0, ++changed.table_seq, table.Encode()));
  change(changed);
  WriteSuperline(changed, number);
}

void Medium::Install(const EpochEntry& entry) {
  const RegionState state = State();
  ChangeWithTable(
      state.table.With(entry, state.superline.head_lsn),
      [&](Superline& superline) { superline.log_epoch = entry.epoch; });
}

void Medium::WriteOneTableCopy(int copy) {
  const RegionState state = State();
  ASSERT_TRUE(
      WriteCellCopy(pmem(), EpochTablePlace(pmem().region(), state.superline),
                    copy, state.superline.table_seq + 1, state.table.Encode()));
}

void Medium::Mark(int line, Epoch epoch, Lsn lsn) {
  const WatermarkFormat mark = EncodeWatermark(kLogId, line, {epoch, lsn});
  pmem().CopyLinesNt(WatermarkLine(pmem().region(), line), &mark, 1);
  ASSERT_TRUE(pmem().Fence());
}

void Medium::WriteRecord(const EpochEntry& epoch, const LogPosition& at,
                         size_t payload_bytes, std::byte payload) {
  const std::vector<std::byte> bytes(payload_bytes, payload);
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  Payload filled(parts);
  filled.ComputeCrc();
  const Ring ring = RingOf(pmem().region(), superline());
  RecordWriter<World::Model> writer(
      pmem(), ring, EpochKey(kLogId, epoch.epoch, epoch.nonce), epoch.epoch);
  writer.WriteCached({.lsn = at.lsn,
                      .begin = at.offset,
                      .offset = at.offset,
                      .end = at.offset + RecordBytes(payload_bytes)},
                     filled, Lsn(0));
  ASSERT_TRUE(Persist(pmem(), ring.At(at.offset), RecordBytes(payload_bytes)));
}

void Medium::Damage(uint64_t offset, uint64_t bytes) {
  std::byte* const there = pmem().region().data() + offset;
  std::vector<std::byte> others(there, there + bytes);
  for (std::byte& byte : others) byte = ~byte;
  pmem().Copy(there, others.data(), bytes);
  ASSERT_TRUE(Persist(pmem(), there, bytes));
}

}  // namespace alpheus::sim
