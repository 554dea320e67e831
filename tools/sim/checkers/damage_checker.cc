// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/damage_checker.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/log/recovered_source.h"
#include "log/core/space/reclaimer.h"
#include "log/format/record.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kCleanedAt = offsetof(RecordHeader, cleaned);
constexpr uint64_t kBehindCleaned = kCleanedAt + sizeof(uint64_t);

bool IsThere(const Lack& lack, std::span<const std::byte> region) {
  return AreOneRecord(lack.bytes.data(), region.data() + lack.at,
                      lack.bytes.size());
}

bool HeaderIsThere(const Lack& lack, std::span<const std::byte> region) {
  return AreOneRecord(lack.bytes.data(), region.data() + lack.at,
                      kRecordHeaderBytes);
}

// Returns whether the log with that table and head has the record.
bool IsOf(const EpochTable& table, Lsn head, Lsn lsn, const Lack& lack) {
  const EpochEntry* const owner = table.Owner(lsn);
  return lsn >= head && owner != nullptr && owner->epoch == lack.epoch;
}

// Puts the record back. A CLEANED word whose header was whole is that of now.
void PutBack(const Lack& lack, std::span<std::byte> region) {
  std::byte* const to = region.data() + lack.at;
  const std::byte* const from = lack.bytes.data();
  if (HeaderIsThere(lack, region)) {
    std::memcpy(to + kBehindCleaned, from + kBehindCleaned,
                lack.bytes.size() - kBehindCleaned);
  } else {
    std::memcpy(to, from, lack.bytes.size());
  }
}

// Returns the LSN that the log's message names.
std::optional<Lsn> LsnOfRefusal(const absl::Status& status) {
  constexpr absl::string_view kBefore = "the header of LSN ";
  const absl::string_view text = status.message();
  const size_t at = text.find(kBefore);
  if (!absl::IsDataLoss(status) || at == absl::string_view::npos) {
    return std::nullopt;
  }
  const absl::string_view from = text.substr(at + kBefore.size());
  uint64_t lsn = 0;
  if (!absl::SimpleAtoi(from.substr(0, from.find(' ')), &lsn)) {
    return std::nullopt;
  }
  return Lsn(lsn);
}

}  // namespace

void DamageChecker::Violate(const char* invariant, const std::string& what) {
  world_.oracle().Violate(invariant, what);
}

DamageChecker::Bytes DamageChecker::Restored(int machine,
                                             std::span<const std::byte> region,
                                             const EpochTable& table,
                                             Lsn head) const {
  Bytes bytes(region.begin(), region.end());
  for (const auto& [lsn, lack] : world_.store().lacks(machine)) {
    if (IsOf(table, head, Lsn(lsn), lack)) PutBack(lack, bytes);
  }
  return bytes;
}

DamageChecker::Bytes DamageChecker::Restored(
    int machine, std::span<const std::byte> region) const {
  Bytes bytes(region.begin(), region.end());
  const absl::StatusOr<RegionState> state = ReadRegionState(bytes, "region");
  if (!state.ok()) return bytes;
  return Restored(machine, region, state->table, state->head().lsn);
}

bool DamageChecker::IsLacking(int machine, Lsn lsn) const {
  const Lacks& lacks = world_.store().lacks(machine);
  const auto lack = lacks.find(lsn.value);
  return lack != lacks.end() && !IsThere(lack->second, world_.Medium(machine));
}

// An installation reads from the place on, if the own records before it are the
// log's and more than a few MiB (P-A4.5).
Lacks DamageChecker::LeftUnread(int machine, const RegionState& before,
                                const RegionState& now) const {
  const RegionStore& store = world_.store();
  const LogPosition head = now.head();
  const LogPosition place = before.proven_place();
  const bool knew = !before.superline.repairing &&
                    !store.InstalledSuspect(machine, now.superline.log_epoch) &&
                    !store.IsNewcomer(machine);
  const bool is_short =
      knew && head.lsn >= before.superline.head_lsn && place.lsn > head.lsn &&
      place.offset - head.offset > world_.options().read_whole_bytes_max;
  if (!is_short) return {};
  Lacks unread;
  for (const auto& [lsn, lack] : store.lacks(machine)) {
    if (Lsn(lsn) < place.lsn && IsOf(now.table, head.lsn, Lsn(lsn), lack) &&
        !IsThere(lack, world_.Medium(machine))) {
      unread.emplace(lsn, lack);
    }
  }
  return unread;
}

void DamageChecker::MayBeRepaired(int machine) {
  const Lacks lacks = world_.store().lacks(machine);
  for (const auto& [lsn, lack] : lacks) {
    if (IsThere(lack, world_.Medium(machine))) {
      world_.store().Repaired(machine, Lsn(lsn));
    }
  }
}

void DamageChecker::Named(int machine, Lsn lsn) {
  // Nobody needs the bytes of a cleaned one.
  if (!IsLacking(machine, lsn) || world_.history().IsCleaned(lsn)) return;
  Violate("DMG1", absl::StrCat("machine ", machine, " reports LSN ", lsn.value,
                               ", which was damaged on its medium"));
}

bool DamageChecker::MayBeUnseen(std::optional<int> machine, Lsn lsn,
                                Lsn read_from) const {
  return machine && lsn < read_from && IsLacking(*machine, lsn);
}

// It may have come from any medium.
bool DamageChecker::MayBeLeft(Lsn lsn) const {
  return world_.history().IsCleaned(lsn) &&
         std::ranges::any_of(
             world_.machines(), [&](const World::Machine& machine) {
               return !world_.store().before(machine.number).empty();
             });
}

bool DamageChecker::ReadRecovered(std::optional<int> machine, const Ring& ring,
                                  const recovery::EpochOpened& opened,
                                  std::span<const History::Shown> records) {
  const std::atomic<bool> is_released{false};
  const Lsn read_from = opened.start.read_from.lsn;
  RecoveredSource source(
      ring, opened.start.superline.ring_offset, opened.start.table, opened.head,
      opened.start.read_from, opened.end.lsn - 1, is_released, "log");
  Lsn next = opened.head.lsn;  // first that the reader has not passed
  Lsn until = opened.end.lsn;  // it can't be further
  RecoveredRecord read;
  for (const History::Shown& record : records) {
    if (record.aborted || record.cleaned) continue;
    if (!source.Next(&read)) {
      until = record.lsn + 1;
      break;
    }
    if (read.lsn != record.lsn || read.epoch != record.epoch ||
        !std::ranges::equal(read.payload, record.payload)) {
      Violate("DMG3",
              absl::StrCat("a reader gets LSN ", read.lsn.value, " of epoch ",
                           read.epoch.value, " where LSN ", record.lsn.value,
                           " of epoch ", record.epoch.value,
                           " is, or with other bytes"));
      return false;
    }
    next = record.lsn + 1;
  }
  if (source.status().ok() && until == opened.end.lsn && !source.Next(&read) &&
      source.status().ok()) {
    return true;
  }
  while (next < until && !MayBeUnseen(machine, next, read_from))
    next = next + 1;
  if (absl::IsDataLoss(source.status()) && next < until) {
    ++world_.counters().damage_read;
    return false;
  }
  Violate("DMG3",
          absl::StrCat("a reader of the recovered log, which ends with LSN ",
                       opened.end.lsn.value - 1, " and was read from LSN ",
                       read_from.value, " on, gets before LSN ", until.value,
                       ": ", source.status().ToString()));
  return false;
}

void DamageChecker::ReadTail(std::optional<int> machine,
                             const RingLog<World::Model>& log, Lsn read_from) {
  TailPlace place;
  place.lsn = log.head_lsn();
  for (Lsn next(0);; next = place.copied_lsn + 1) {
    const absl::StatusOr<bool> copied = log.CopyNext(place);
    if (!copied.ok()) {
      if (absl::IsDataLoss(copied.status()) &&
          (MayBeUnseen(machine, place.lsn, read_from) ||
           MayBeLeft(place.lsn))) {
        ++world_.counters().damage_read;
        return;
      }
      return Violate(
          "DMG3", absl::StrCat("a tail can't read LSN ", place.lsn.value, ": ",
                               copied.status().ToString()));
    }
    if (!*copied) return;
    world_.history().Followed(next, {.lsn = place.copied_lsn,
                                     .epoch = place.epoch,
                                     .payload = place.payload});
  }
}

bool DamageChecker::MayRefuse(int machine, Lsn read_from,
                              const absl::Status& status) const {
  const std::optional<Lsn> lsn = LsnOfRefusal(status);
  if (!lsn || !MayBeUnseen(machine, *lsn, read_from)) return false;
  const Lack& lack = world_.store().lacks(machine).at(lsn->value);
  return !HeaderIsThere(lack, world_.Medium(machine));
}

}  // namespace alpheus::sim
