// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/durability_checker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

bool AreOneRecord(const std::byte* a, const std::byte* b, uint64_t bytes) {
  constexpr uint64_t kCleanedAt = offsetof(RecordHeader, cleaned);
  constexpr uint64_t kBehind = kCleanedAt + sizeof(uint64_t);
  return std::memcmp(a, b, kCleanedAt) == 0 &&
         std::memcmp(a + kBehind, b + kBehind, bytes - kBehind) == 0;
}

void DurabilityChecker::Learn(const RecordView& record, const std::byte* bytes,
                              Epoch log_epoch) {
  // An ABORTED record may go: heads move over it.
  if (record.aborted() || record.cleaned) return;
  if (world_.history().IsCleaned(record.lsn())) return;
  Copy copy{
      record.epoch(), record.header.header_crc(), record.offset, log_epoch, {}};
  copy.bytes.assign(bytes, bytes + kRecordHeaderBytes + record.payload.size());
  copies_.insert_or_assign(record.lsn().value, std::move(copy));
}

bool DurabilityChecker::Agrees(const RecordView& record,
                               Epoch log_epoch) const {
  const auto known = copies_.find(record.lsn().value);
  return known == copies_.end() || known->second.epoch > log_epoch ||
         (known->second.epoch == record.epoch() &&
          known->second.header_crc == record.header.header_crc());
}

bool DurabilityChecker::Counts(int machine, const Copy& copy) const {
  const ConfigurationChecker& configurations = world_.checkers().configurations;
  return world_.store().medium(machine) != nullptr &&
         configurations.IsMember(configurations.Of(copy.log_epoch), machine) &&
         world_.checkers().epochs.log_epoch(machine) >= copy.log_epoch;
}

bool DurabilityChecker::Holds(int machine, const Copy& copy) const {
  return Counts(machine, copy) && LiesIn(world_.Medium(machine), copy);
}

bool DurabilityChecker::Lacks(int machine, const Copy& copy) const {
  if (!Counts(machine, copy)) return false;
  const Ring place(nullptr, world_.options().ring_capacity);
  const size_t at = world_.layout().ring_offset + place.Place(copy.offset);
  return std::ranges::any_of(
      world_.store().lacks(machine), [&](const auto& lacking) {
        const Lack& lack = lacking.second;
        return lack.at == at && lack.bytes.size() == copy.bytes.size() &&
               AreOneRecord(lack.bytes.data(), copy.bytes.data(),
                            copy.bytes.size());
      });
}

bool DurabilityChecker::IsAnywhere(const Copy& copy) const {
  return std::ranges::any_of(
      world_.machines(), [&](const World::Machine& machine) {
        return world_.store().medium(machine.number) != nullptr &&
               LiesIn(world_.Medium(machine.number), copy);
      });
}

bool DurabilityChecker::RecordsBefore(int machine, const Copy& copy) const {
  const auto& before = world_.store().before(machine);
  const Configuration& members =
      world_.checkers().configurations.Of(copy.log_epoch);
  return std::ranges::any_of(before, [&](const RegionStore::Before& was) {
    return was.log_epoch >= copy.log_epoch &&
           Names(members, {world_.machine(machine).id(), was.incarnation}) &&
           LiesIn(was.image, copy);
  });
}

bool DurabilityChecker::LiesIn(std::span<const std::byte> image,
                               const Copy& copy) const {
  const Ring place(nullptr, world_.options().ring_capacity);
  const std::byte* const there =
      image.data() + world_.layout().ring_offset + place.Place(copy.offset);
  return AreOneRecord(copy.bytes.data(), there, copy.bytes.size());
}

std::set<uint64_t> DurabilityChecker::Needed() const {
  std::set<uint64_t> needed;
  for (const auto& [lsn, copy] : copies_) {
    if (!world_.history().IsCleaned(Lsn(lsn))) needed.insert(lsn);
  }
  return needed;
}

std::set<uint64_t> DurabilityChecker::RecordsOn(int machine) const {
  std::set<uint64_t> had;
  for (const auto& [lsn, copy] : copies_) {
    if (world_.history().IsCleaned(Lsn(lsn))) continue;
    if (LiesIn(world_.Medium(machine), copy)) had.insert(lsn);
  }
  return had;
}

int DurabilityChecker::Holders(const Copy& copy) const {
  int holders = 0;
  for (const World::Machine& machine : world_.machines()) {
    const bool has = Holds(machine.number, copy) ||
                     Lacks(machine.number, copy) ||
                     RecordsBefore(machine.number, copy);
    holders += has ? 1 : 0;
  }
  return holders;
}

void DurabilityChecker::JudgeReport(int machine,
                                    const recovery::StateReport& report) const {
  recovery::VerdictReader reader(report);
  // A scan ends at the ceiling, a lap after the head at most (P-A4.3). Records
  // after a lap were copied to a replica whose head is older, and nobody
  // counted them before it installed that log, head included.
  const RingOffset scanned =
      report.head.offset + world_.options().ring_capacity;
  for (auto it = copies_.lower_bound(report.head.lsn.value);
       it != copies_.end(); ++it) {
    const auto& [lsn, copy] = *it;
    if (world_.history().IsCleaned(Lsn(lsn)) || !Holds(machine, copy) ||
        copy.offset + copy.bytes.size() > scanned) {
      continue;
    }
    const recovery::VerdictReader::Seen seen = reader.At(Lsn(lsn));
    const bool is_it = seen.record == nullptr
                           ? seen.epoch == copy.epoch
                           : seen.record->header_checksum == copy.header_crc;
    if (seen.verdict == recovery::Verdict::kHave && is_it) continue;
    return world_.oracle().Violate(
        "P-INV-9",
        absl::StrCat("machine ", machine, " answers ",
                     recovery::VerdictName(seen.verdict), " of LSN ", lsn,
                     ", which is durable, of epoch ", copy.epoch.value,
                     ", and on its medium at offset ", copy.offset.value,
                     "; its head is LSN ", report.head.lsn.value, " at offset ",
                     report.head.offset.value, ", it proves LSN ",
                     report.proven_lsn.value));
  }
}

void DurabilityChecker::JudgeDamaged(
    int machine, const recovery::StateReport& report) const {
  recovery::VerdictReader reader(report);
  const auto& lacks = world_.store().lacks(machine);
  for (auto it = lacks.lower_bound(report.head.lsn.value); it != lacks.end();
       ++it) {
    const auto& [lsn, lack] = *it;
    const recovery::Verdict verdict = reader.At(Lsn(lsn)).verdict;
    if (!lack.is_proven || (verdict != recovery::Verdict::kTorn &&
                            verdict != recovery::Verdict::kAbsent)) {
      continue;
    }
    return world_.oracle().Violate(
        "P-INV-9", absl::StrCat("machine ", machine, " answers ",
                                recovery::VerdictName(verdict), " of LSN ", lsn,
                                ", which its medium proves to have had"));
  }
}

void DurabilityChecker::Check() {
  ++world_.counters().durability_checks;
  for (auto it = copies_.begin(); it != copies_.end();) {
    const auto& [lsn, copy] = *it;
    if (world_.history().IsCleaned(Lsn(lsn))) {
      it = copies_.erase(it);
      continue;
    }
    ++world_.counters().records_still_durable;
    const int holders = Holders(copy);
    const ConfigurationChecker& configurations =
        world_.checkers().configurations;
    const int needed =
        configurations.WriteQuorumOf(configurations.Of(copy.log_epoch));
    if (holders < needed) {
      world_.oracle().Violate(
          "P-INV-22", absl::StrCat("LSN ", lsn, " of epoch ", copy.epoch.value,
                                   " was durable, and is on ", holders,
                                   " media of members now, of ", needed));
      return;
    }
    if (!IsAnywhere(copy) && FaultBudget(world_).MustSurvive()) {
      world_.oracle().Violate(
          "DMG5", absl::StrCat("LSN ", lsn, " of epoch ", copy.epoch.value,
                               " was durable, and no medium has it whole"));
      return;
    }
    ++it;
  }
}

}  // namespace alpheus::sim
