// SPDX-License-Identifier: Apache-2.0
// Fuzzes the epoch table: its content by itself, who owns which LSN, what an
// opening makes of it, and regions whose table copies were damaged or forged.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/damaged_region.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/oracles/naive_format.h"
#include "tests/support/oracles/naive_scan.h"

namespace alpheus::testing {
namespace {

constexpr Uuid kLogId = {3, 4};
constexpr uint64_t kEntryBytes = 40;

// Entries near each other, mostly in order; or the bytes as they come.
std::vector<std::byte> MakeContent(FuzzInput& input) {
  const uint8_t choice = input.Byte();
  if (choice >= 224) {
    const auto raw = std::as_bytes(input.Take(512));
    return {raw.begin(), raw.end()};
  }
  std::vector<std::byte> content;
  uint64_t epoch = 0;
  uint64_t lsn = 0;
  for (uint64_t entries = choice % 16; entries > 0; --entries) {
    const uint8_t step = input.Byte();
    epoch = step >= 240 ? input.Near(epoch) : epoch + 1 + step % 4;
    lsn = step >= 224 ? input.Near(lsn) : lsn + step / 4 % 8;
    content.resize(content.size() + kEntryBytes);
    const std::span<std::byte> entry = std::span(content).last(kEntryBytes);
    const uint64_t fields[] = {epoch, input.Byte(), lsn, uint64_t{step} * 64,
                               step};
    for (size_t i = 0; i < 5; ++i) {
      naive::StoreLittle(entry, i * 8, 8, fields[i]);
    }
  }
  if (choice >= 208) content.resize(content.size() + input.Below(kEntryBytes));
  return content;
}

void ExpectSameOwner(const EpochTable& table, const naive::EpochTable& expected,
                     uint64_t lsn) {
  const EpochEntry* owner = table.Owner(Lsn(lsn));
  const naive::EpochEntry* naive_owner = naive::OwnerOf(expected, lsn);
  ExpectSame("LSN is owned", owner != nullptr, naive_owner != nullptr);
  if (owner == nullptr) return;
  ExpectSame("owner", owner->epoch, naive_owner->epoch);
  ExpectSame("seed", table.KeyOf(owner).Seed(Lsn(lsn), RingOffset(lsn * 64)),
             naive::RecordSeed(NaiveId(kLogId), *naive_owner, lsn, lsn * 64));
}

// ET3 (epoch_table.h): the next epoch goes behind the others; whoever owned a
// live record still owns it.
void ExpectNextKeepsOwners(FuzzInput& input, const EpochTable& table,
                           const naive::EpochTable& expected) {
  EpochEntry next{Epoch(1), 77, Lsn(1), RingOffset(0), 0};
  if (!expected.empty()) {
    if (expected.back().epoch + 1 == 0) return;
    next.epoch = Epoch(expected.back().epoch + 1);
    const uint64_t room = ~uint64_t{0} - expected.back().start_lsn;
    next.start_lsn =
        Lsn(expected.back().start_lsn + std::min(input.Below(8), room));
  }
  const uint64_t back = std::min(input.Below(32), next.start_lsn.value);
  const Lsn head(next.start_lsn.value - back);
  const EpochTable after = table.With(next, head);
  ExpectTrue(after.entries().back() == next, "the next epoch is the last");
  ExpectTrue(after.entries().size() <= expected.size() + 1, "none is added");
  for (Lsn lsn = head; lsn < next.start_lsn; lsn = lsn + 1) {
    const EpochEntry* before = table.Owner(lsn);
    const EpochEntry* now = after.Owner(lsn);
    ExpectSame("live LSN is owned", now != nullptr, before != nullptr);
    ExpectTrue(now == nullptr || *now == *before, "live LSN keeps its owner");
  }
  for (size_t i = 0; i + 1 < after.entries().size(); ++i) {
    ExpectTrue(after.entries()[i + 1].start_lsn > head,
               "an epoch without a live record is dropped");
  }
}

void FuzzContent(FuzzInput& input) {
  const std::vector<std::byte> content = MakeContent(input);
  naive::EpochTable expected;
  const naive::Outcome outcome = naive::ReadTable(content, &expected);
  const auto table = EpochTable::Decode(kLogId, content);
  ExpectSameOutcome("epoch table", table.status(), outcome);
  if (!table.ok()) return;
  ExpectSameTable(*table, expected);
  ExpectTrue(table->Encode() == content, "encoding gives the same bytes");
  for (const naive::EpochEntry& entry : expected) {
    for (const uint64_t around : {~uint64_t{0}, uint64_t{0}, uint64_t{1}}) {
      ExpectSameOwner(*table, expected, entry.start_lsn + around);
    }
  }
  ExpectSameOwner(*table, expected, input.Near(0));
  ExpectNextKeepsOwners(input, *table, expected);
}

void FuzzOne(FuzzInput& input) {
  if (input.Flag()) {
    FuzzContent(input);
  } else {
    FuzzDamagedRegion(input, MutationTarget::kEpochTable);
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
