// SPDX-License-Identifier: Apache-2.0
// Fuzzes the scan over a ring of arbitrary bytes, with arbitrary epochs.
//
// Nothing arbitrary has a valid checksum, so the input may ask for parts of a
// header to be made plausible, line by line, and for checksums to be put right
// last of all.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "log/core/read/scan.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/line_buffer.h"
#include "tests/support/oracles/naive_format.h"
#include "tests/support/oracles/naive_scan.h"

namespace alpheus::testing {
namespace {

constexpr Uuid kLogId = {0x1234'5678'9abc'def0, 0x0fed'cba9'8765'4321};

// Parts of a line that the input may put right.
enum Repair : uint8_t {
  kRepairLsn = 1,
  kRepairEpoch = 2,
  kRepairLength = 4,
  kRepairMagicAndType = 8,
  kRepairPayload = 16,
  kRepairHeader = 32,
  kRepairCleaned = 64,
  kRepairDurable = 128,
};

// Where no sum overflows (docs/formats/log.md), at both ends.
naive::Position MakeHead(FuzzInput& input, uint64_t ring_bytes) {
  naive::Position head;
  const uint8_t choice = input.Byte();
  head.lsn = choice % 4 == 3 ? (uint64_t{1} << 60) - choice / 8 : 1 + choice;
  uint64_t offset = input.Below(64) * 64;
  if (choice % 8 >= 6) offset = (uint64_t{1} << 62) - offset;
  if (choice % 8 == 5) offset += ring_bytes * 1000;
  head.offset = offset;
  head.chain = choice;
  return head;
}

naive::EpochTable MakeTable(FuzzInput& input, uint64_t head_lsn) {
  naive::EpochTable table;
  uint64_t epoch = input.Below(4);
  uint64_t lsn = input.Flag() ? 0 : head_lsn;
  for (uint64_t entries = input.Below(5); entries > 0; --entries) {
    epoch += 1 + input.Below(3);
    table.push_back({epoch, input.Byte(), lsn, input.Below(64) * 64, 0});
    lsn += input.Below(8);
  }
  return table;
}

std::vector<std::byte> Encode(const naive::EpochTable& table) {
  std::vector<std::byte> content(table.size() * 40);
  for (size_t i = 0; i < table.size(); ++i) {
    const uint64_t fields[] = {table[i].epoch, table[i].nonce,
                               table[i].start_lsn, table[i].start_offset,
                               table[i].start_chain};
    for (size_t f = 0; f < 5; ++f) {
      naive::StoreLittle(content, i * 40 + f * 8, 8, fields[f]);
    }
  }
  return content;
}

void RepairLine(FuzzInput& input, const naive::ScanTask& task,
                std::span<std::byte> ring, uint64_t line, uint8_t repair) {
  const std::span<std::byte> record = ring.subspan(line * kLineBytes);
  // The offset from the head on that has this place.
  const uint64_t lap = task.head.offset / ring.size() * ring.size();
  uint64_t offset = lap + line * kLineBytes;
  if (offset < task.head.offset) offset += ring.size();
  uint64_t lsn = naive::LoadLittle(record, 0, 8);
  if ((repair & kRepairLsn) != 0) {
    lsn = task.head.lsn + input.Below(12);
    naive::StoreLittle(record, 0, 8, lsn);
  }
  const naive::EpochEntry* owner = naive::OwnerOf(task.table, lsn);
  if ((repair & kRepairEpoch) != 0 && owner != nullptr) {
    naive::StoreLittle(record, 8, 8, owner->epoch);
  }
  if ((repair & kRepairDurable) != 0) {
    naive::StoreLittle(record, 16, 8, input.Flag() ? input.Near(lsn) : 0);
  }
  if ((repair & kRepairLength) != 0) {
    naive::StoreLittle(record, 24, 4, input.Below(ring.size() + 64));
  }
  if ((repair & kRepairMagicAndType) != 0) {
    naive::StoreLittle(record, 28, 2, 0xa1f5);
    naive::StoreLittle(record, 30, 1, input.Below(16) < 12 ? 1 : input.Byte());
  }
  if (owner == nullptr) return;
  const uint64_t seed = naive::RecordSeed(task.log_id, *owner, lsn, offset);
  if ((repair & kRepairCleaned) != 0) {
    naive::StoreLittle(record, 40, 8, naive::CleanedWord(seed));
  }
  if ((repair & kRepairHeader) != 0) {
    naive::ResealRecord(seed, record, (repair & kRepairPayload) != 0);
  }
}

void FuzzOne(FuzzInput& input) {
  const uint64_t lines = 4 + input.Below(13);
  const LineBuffer buffer(lines * kLineBytes);
  const std::span<std::byte> ring = buffer.bytes();
  naive::ScanTask task;
  task.ring = ring;
  task.log_id = NaiveId(kLogId);
  task.head = MakeHead(input, ring.size());
  task.table = MakeTable(input, task.head.lsn);
  task.proven_lsn = input.Flag() ? input.Near(task.head.lsn) : 0;

  std::vector<std::pair<uint64_t, uint8_t>> orders;  // line, repair
  for (uint64_t n = input.Below(24); n > 0; --n) {
    const uint64_t line = input.Below(lines);
    orders.emplace_back(line, input.Byte());
  }
  // Their own choices come before the bytes of the ring.
  FuzzInput choices = input;
  const size_t choice_bytes =
      std::min<size_t>(input.rest().size(), orders.size() * 4);
  input.Take(choice_bytes);
  const std::span<const uint8_t> raw = input.Take(ring.size());
  std::copy(raw.begin(), raw.end(), reinterpret_cast<uint8_t*>(ring.data()));
  // From the last line on, so that payloads are as they stay.
  std::ranges::sort(orders, std::greater<>());
  for (const auto& [line, repair] : orders) {
    RepairLine(choices, task, ring, line, repair);
  }

  const auto table = EpochTable::Decode(kLogId, Encode(task.table));
  ExpectTrue(table.ok(), "an ordered table is decoded");
  ScanInput scan;
  scan.ring = Ring(ring.data(), ring.size());
  scan.table = &*table;
  scan.head = {Lsn(task.head.lsn), RingOffset(task.head.offset),
               task.head.chain};
  scan.start = scan.head;
  scan.ceiling = scan.head.offset + scan.ring.capacity();
  scan.proven_lsn = Lsn(task.proven_lsn);
  ExpectSameScan(scan, task);
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
