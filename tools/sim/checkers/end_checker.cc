// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/end_checker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

int EndChecker::CompareMedia(Epoch epoch, Lsn next, uint32_t in_sync) {
  records_.clear();
  int whole = 0;
  for (World::Machine& machine : world_.machines()) {
    if (Compare(machine, epoch, next)) ++whole;
  }
  world_.counters().media_compared += static_cast<uint64_t>(whole);
  if (whole < static_cast<int>(in_sync)) {
    world_.oracle().Violate(
        "P-INV-15",
        absl::StrCat("all is acknowledged to LSN ", next.value - 1,
                     " of epoch ", epoch.value, " by ", in_sync,
                     " replicas, and ", whole, " media hold the whole log"));
  }
  return whole;
}

bool EndChecker::Compare(World::Machine& machine, Epoch epoch, Lsn next) {
  if (world_.store().medium(machine.number) == nullptr) return false;
  const auto medium = world_.Medium(machine.number);
  std::vector<std::byte> image(medium.begin(), medium.end());
  const absl::StatusOr<RegionState> state = ReadRegionState(image, "medium");
  if (!state.ok() || state->superline.log_epoch != epoch) return false;
  image = world_.checkers().damage.Restored(machine.number, medium,
                                            state->table, state->head().lsn);
  const Ring ring = RingOf(image, state->superline);
  RecordCursor cursor(ring, state->table, state->head(),
                      state->head().offset + ring.capacity());
  while (cursor.position().lsn < next) {
    if (cursor.Next() != RecordCursor::Step::kRecord) return false;
    CompareRecord(machine.number, cursor.record(),
                  ring.At(cursor.record().offset));
  }
  return true;
}

void EndChecker::CompareRecord(int machine, const RecordView& record,
                               const std::byte* bytes) {
  ++world_.counters().records_compared;
  // The payload of a cleaned or ABORTED one means nothing.
  const uint64_t count =
      kRecordHeaderBytes + (record.cleaned ? 0 : record.payload.size());
  const std::vector<std::byte> own(bytes, bytes + count);
  const auto [first, is_new] = records_.emplace(record.lsn().value, own);
  if (is_new) return;
  const uint64_t both = std::min(first->second.size(), own.size());
  if (AreOneRecord(first->second.data(), own.data(), both)) return;
  world_.oracle().Violate(
      "byte-equality",
      absl::StrCat("LSN ", record.lsn().value, " has other bytes on machine ",
                   machine, " than on another one that is in sync"));
}

void EndChecker::CompareEnds(Lsn closed, Lsn opened) {
  if (opened == closed) return;
  world_.oracle().Violate(
      "P-C4", absl::StrCat("a log that was closed before LSN ", closed.value,
                           " ends before LSN ", opened.value));
}

void EndChecker::CheckWhenIdle(Epoch epoch) {
  for (const World::Machine& machine : world_.machines()) {
    EpochChecker& epochs = world_.checkers().epochs;
    if (world_.store().medium(machine.number) == nullptr ||
        epochs.log_epoch(machine.number) != epoch) {
      continue;
    }
    ++world_.counters().idle_checks;
    epochs.CheckWhenIdle(machine.number);
  }
}

}  // namespace alpheus::sim
