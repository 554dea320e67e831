// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/repair_checker.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// For the canary: changes a byte of the payload, if there is one.
std::vector<std::byte> Spoilt(std::span<const std::byte> bytes) {
  std::vector<std::byte> spoilt(bytes.begin(), bytes.end());
  if (spoilt.size() > kRecordHeaderBytes) {
    spoilt[kRecordHeaderBytes] ^= std::byte{1};
  }
  return spoilt;
}

}  // namespace

void RepairChecker::Violate(int machine, const std::string& what) {
  world_.oracle().Violate("P-A8",
                          absl::StrCat("machine ", machine, ": ", what));
}

const std::byte* RepairChecker::RingOf(int machine) const {
  return world_.Medium(machine).data() + world_.layout().ring_offset;
}

absl::Status RepairChecker::Watch(int machine, const Bounds& bounds,
                                  RingOffset offset,
                                  std::span<const std::byte> bytes,
                                  Restore restore) {
  JudgeReplica(machine, bounds);
  const DurabilityChecker& durability = world_.checkers().durability;
  const std::set<uint64_t> had = durability.RecordsOn(machine);
  const std::set<uint64_t> cleaned =
      Cleaned(machine, bounds, offset, bytes.size());
  std::vector<std::byte> written(bytes.begin(), bytes.end());
  if (world_.options().canary == Canary::kBadRepair) written = Spoilt(bytes);
  const absl::Status restored = restore(written);
  if (!restored.ok()) return restored;  // the medium has failed
  ++world_.counters().repaired_places;
  world_.checkers().damage.MayBeRepaired(machine);
  const Ring place(nullptr, world_.options().ring_capacity);
  if (std::memcmp(RingOf(machine) + place.Place(offset), written.data(),
                  written.size()) != 0) {
    Violate(machine,
            absl::StrCat("the bytes that a scrub has written at offset ",
                         offset.value, " are not on the medium"));
  }
  const std::set<uint64_t> records =
      JudgeRecords(machine, bounds, offset, written);
  const std::set<uint64_t> still =
      Cleaned(machine, bounds, offset, bytes.size());
  if (!std::ranges::includes(still, cleaned)) {
    Violate(machine, absl::StrCat("a scrub takes back at offset ", offset.value,
                                  " that a record was cleaned"));
  }
  const std::set<uint64_t> holds = durability.RecordsOn(machine);
  // Others may have cleaned some meanwhile.
  const std::set<uint64_t> needed = durability.Needed();
  for (const uint64_t lsn : had) {
    if (holds.contains(lsn) || !needed.contains(lsn)) continue;
    Violate(machine,
            absl::StrCat("a scrub that writes at offset ", offset.value,
                         " takes LSN ", lsn, ", which is durable"));
  }
  for (const uint64_t lsn : records) {
    const bool is_back = holds.contains(lsn) && !had.contains(lsn);
    world_.counters().repaired_durable += is_back ? 1 : 0;
  }
  world_.counters().repaired_records += records.size();
  return restored;
}

void RepairChecker::JudgeReplica(int machine, const Bounds& bounds) {
  EpochChecker& epochs = world_.checkers().epochs;
  epochs.CheckNews();
  if (!world_.store().IsOwn(machine)) {
    Violate(machine, "a region that is no replica of the log is scrubbed");
  }
  if (epochs.repairing(machine)) {
    Violate(machine, "a replica is scrubbed in the middle of a repair");
  }
  if (bounds.is_at_work) {
    Violate(machine, "a scrub writes while an opening works on the replica");
  }
}

std::set<uint64_t> RepairChecker::Cleaned(int machine, const Bounds& bounds,
                                          RingOffset offset,
                                          size_t bytes) const {
  const Ring place(nullptr, world_.options().ring_capacity);
  const std::span<const std::byte> visible =
      world_.machine(machine).pmem->region().subspan(
          world_.layout().ring_offset);
  std::set<uint64_t> cleaned;
  uint64_t at = offset.value / kLineBytes * kLineBytes;
  for (; at < offset.value + bytes; at += kLineBytes) {
    const HeaderWords header =
        LoadHeader(visible.data() + place.Place(RingOffset(at)));
    const EpochEntry* const owner = bounds.table.Owner(Lsn(header.lsn()));
    if (owner == nullptr) continue;
    const uint64_t seed =
        bounds.table.KeyOf(owner).Seed(Lsn(header.lsn()), RingOffset(at));
    if (HeaderIsValid(seed, header) && header.cleaned() == CleanedWord(seed)) {
      cleaned.insert(at);
    }
  }
  return cleaned;
}

// Places begin with a record or a PAD, or are one CLEANED word.
std::set<uint64_t> RepairChecker::JudgeRecords(
    int machine, const Bounds& bounds, RingOffset offset,
    std::span<const std::byte> bytes) {
  std::set<uint64_t> records;
  while (bytes.size() >= kRecordHeaderBytes) {
    const HeaderWords header = LoadHeader(bytes.data());
    const auto type = static_cast<RecordType>(header.type());
    if (header.magic() != kRecordMagic) {
      Violate(machine, absl::StrCat("a scrub writes no record at offset ",
                                    offset.value));
      break;
    }
    if (type == RecordType::kPad) break;
    const uint64_t all = RecordBytes(header.payload_bytes());
    if (all > bytes.size()) {
      Violate(machine,
              absl::StrCat("a scrub writes a part of LSN ", header.lsn()));
      break;
    }
    JudgeRecord(machine, bounds, offset, header,
                bytes.subspan(kRecordHeaderBytes, header.payload_bytes()));
    records.insert(header.lsn());
    offset = offset + all;
    bytes = bytes.subspan(all);
  }
  return records;
}

void RepairChecker::JudgeRecord(int machine, const Bounds& bounds,
                                RingOffset at, const HeaderWords& header,
                                std::span<const std::byte> payload) {
  const Lsn lsn(header.lsn());
  const Epoch epoch(header.epoch());
  const std::string what =
      absl::StrCat("a scrub writes LSN ", lsn.value, " of epoch ", epoch.value,
                   " at offset ", at.value);
  if (lsn < bounds.head || lsn > bounds.last) {
    return Violate(
        machine, absl::StrCat(what, "; persisted are LSNs ", bounds.head.value,
                              " to ", bounds.last.value));
  }
  const EpochEntry* const owner = bounds.table.Owner(lsn);
  if (owner == nullptr || owner->epoch != epoch) {
    return Violate(machine, absl::StrCat(what, ", which does not own it"));
  }
  const bool is_data =
      static_cast<RecordType>(header.type()) == RecordType::kData;
  if (is_data && !world_.history().WroteThere(lsn, epoch, payload)) {
    Violate(machine, absl::StrCat(what, ", with bytes that nobody wrote"));
  }
}

}  // namespace alpheus::sim
