// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/holder_checker.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

bool AreOneRecord(const std::byte* a, const std::byte* b, uint64_t bytes) {
  constexpr uint64_t kCleanedAt = offsetof(RecordHeader, cleaned);
  constexpr uint64_t kBehind = kCleanedAt + sizeof(uint64_t);
  return std::memcmp(a, b, kCleanedAt) == 0 &&
         std::memcmp(a + kBehind, b + kBehind, bytes - kBehind) == 0;
}

void HolderChecker::Learn(const RecordView& record, const std::byte* bytes) {
  // Nobody needs an ABORTED one: heads move over it.
  if (record.aborted() || record.cleaned) return;
  if (world_.history().IsCleaned(record.lsn())) return;
  Copy copy{record.epoch(), record.header.header_crc(), record.offset, {}};
  copy.bytes.assign(bytes, bytes + kRecordHeaderBytes + record.payload.size());
  copies_.insert_or_assign(record.lsn().value, std::move(copy));
}

bool HolderChecker::Agrees(const RecordView& record, Epoch log_epoch) const {
  const auto known = copies_.find(record.lsn().value);
  return known == copies_.end() || known->second.epoch > log_epoch ||
         (known->second.epoch == record.epoch() &&
          known->second.header_crc == record.header.header_crc());
}

int HolderChecker::Holders(const Copy& copy) const {
  const Ring place(nullptr, world_.options().ring_capacity);
  const uint64_t at = world_.layout().ring_offset + place.Place(copy.offset);
  int holders = 0;
  for (const World::Machine& machine : world_.machines()) {
    if (machine.pmem == nullptr) continue;
    const std::byte* const there = machine.pmem->persistent().data() + at;
    holders +=
        AreOneRecord(copy.bytes.data(), there, copy.bytes.size()) ? 1 : 0;
  }
  return holders;
}

void HolderChecker::Look() {
  ++world_.counters().looks_for_holders;
  for (auto it = copies_.begin(); it != copies_.end();) {
    const auto& [lsn, copy] = *it;
    if (world_.history().IsCleaned(Lsn(lsn))) {
      it = copies_.erase(it);
      continue;
    }
    ++world_.counters().records_still_held;
    const int holders = Holders(copy);
    if (holders < world_.options().write_quorum) {
      world_.referee().Violate(
          "INV-22",
          absl::StrCat("LSN ", lsn, " of epoch ", copy.epoch.value,
                       " was durable, and is on ", holders, " media now, of ",
                       world_.options().write_quorum));
      return;
    }
    ++it;
  }
}

}  // namespace alpheus::sim
