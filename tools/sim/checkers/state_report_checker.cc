// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/state_report_checker.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/core/read/record_cursor.h"
#include "log/format/layout.h"
#include "log/format/record.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {

void StateReportChecker::Violate(int machine, const char* invariant,
                                 const std::string& what) {
  world_.oracle().Violate(invariant,
                          absl::StrCat("machine ", machine, ": ", what));
}

bool StateReportChecker::IsReplica(int machine) {
  RegionStore& store = world_.store();
  // A joining machine has a replica from its installation on.
  if (store.IsNewcomer(machine)) world_.checkers().epochs.CheckNews();
  if (store.content(machine) == RegionStore::Content::kAlien) {
    Violate(machine, "P-A8", "a region that is not its replica takes part");
  }
  return store.IsOwn(machine);
}

void StateReportChecker::Promised(int machine, const quorum::Promise& promise) {
  if (!IsReplica(machine)) return;
  EpochChecker& epochs = world_.checkers().epochs;
  epochs.CheckNews();
  if (epochs.promise(machine) == promise) return;
  Violate(machine, "P-A4.2",
          absl::StrCat("epoch ", promise.epoch.value,
                       " is promised, and the medium says epoch ",
                       epochs.promise(machine).epoch.value));
}

void StateReportChecker::RepairBegan(int machine) {
  if (!IsReplica(machine)) return;
  EpochChecker& epochs = world_.checkers().epochs;
  epochs.CheckNews();
  if (epochs.repairing(machine)) return;
  Violate(machine, "P-INV-12", "a repair begins, and the medium knows nothing");
}

void StateReportChecker::Installed(int machine, Epoch epoch) {
  if (!IsReplica(machine)) {
    return Violate(machine, "P-INV-16",
                   absl::StrCat("epoch ", epoch.value,
                                " is installed on a blank replica"));
  }
  EpochChecker& epochs = world_.checkers().epochs;
  epochs.CheckNews();
  world_.store().Trust(machine);
  if (epochs.log_epoch(machine) == epoch) return;
  Violate(machine, "P-INV-3",
          absl::StrCat("epoch ", epoch.value,
                       " is installed, and the medium says epoch ",
                       epochs.log_epoch(machine).value));
}

void StateReportChecker::Reported(int machine,
                                  const recovery::StateReport& report) {
  if (!IsReplica(machine)) {
    if (report.knows()) {
      Violate(machine, "P-INV-16", "a blank replica answers as if it knew");
    }
    if (world_.store().IsNewcomer(machine)) {
      EpochChecker& epochs = world_.checkers().epochs;
      epochs.CheckNews();
      world_.checkers().choices.Reported(machine, epochs.promise(machine).epoch,
                                         report);
    }
    return;
  }
  EpochChecker& epochs = world_.checkers().epochs;
  epochs.CheckNews();
  const std::optional<RegionState> medium = epochs.Read(machine);
  if (!medium) return;
  JudgeFrame(machine, report, *medium);
  world_.checkers().choices.Reported(machine, medium->superline.promised_epoch,
                                     report);
  if (!report.knows()) return;
  if (world_.store().IsSuspect(machine)) {
    Violate(machine, "P-INV-25",
            "a fence failed here, and the answer is as if nothing was");
  }
  JudgePlace(machine, report, *medium);
  for (const recovery::VerdictRun& run : report.runs) {
    if (run.verdict != recovery::Verdict::kHave) continue;
    for (uint64_t i = 0; i < run.end - run.first; ++i) {
      JudgeRecord(machine, run.first + i, report.records[run.first_record + i]);
    }
  }
  world_.checkers().durability.JudgeReport(machine, report);
  world_.checkers().durability.JudgeDamaged(machine, report);
}

void StateReportChecker::JudgeFrame(int machine,
                                    const recovery::StateReport& report,
                                    const RegionState& medium) {
  const Superline& superline = medium.superline;
  if (report.log_epoch != superline.log_epoch) {
    Violate(machine, "P-A4.3",
            absl::StrCat("an answer of log epoch ", report.log_epoch.value,
                         ", and the medium says ", superline.log_epoch.value));
  }
  if (superline.repairing && !report.repairing) {
    Violate(machine, "P-INV-12",
            "a repair was cut off, and the answer hides it");
  }
  if (report.table != medium.table) {
    Violate(machine, "P-A4.3",
            "an answer with another table than the medium's");
  }
  if (report.head != medium.head()) {
    Violate(
        machine, "P-A4.3",
        absl::StrCat("an answer whose head is LSN ", report.head.lsn.value,
                     ", and on the medium it is LSN ", superline.head_lsn.value,
                     " or has another offset or chain"));
  }
  if (report.knows() && report.proven_lsn < medium.ProvenLsn()) {
    Violate(
        machine, "P-INV-9",
        absl::StrCat("the medium proves all to LSN ", medium.ProvenLsn().value,
                     ", and the answer to LSN ", report.proven_lsn.value,
                     ": what is broken in between would be nacked"));
  }
}

// STR4 (state_report.h), with the records put back that a fault took: a report
// may claim those by its place (DMG1).
void StateReportChecker::JudgePlace(int machine,
                                    const recovery::StateReport& report,
                                    const RegionState& medium) {
  if (!report.place) return;
  std::vector<std::byte> bytes = world_.checkers().damage.Restored(
      machine, world_.Medium(machine), medium.table, medium.head().lsn);
  RecordCursor cursor(RingOf(bytes, medium.superline), medium.table,
                      medium.head(), report.place->offset,
                      RecordCursor::Payloads::kSkip);
  while (cursor.position().lsn < report.place->lsn) {
    const Lsn lsn = cursor.position().lsn;
    if (cursor.Next() == RecordCursor::Step::kRecord) continue;
    return Violate(
        machine, "P-INV-7",
        absl::StrCat("the report has all before LSN ", report.place->lsn.value,
                     ", and LSN ", lsn.value, " is not on the medium"));
  }
  ++world_.counters().reports_checked;
  if (cursor.position() == *report.place) return;
  Violate(
      machine, "P-INV-8",
      absl::StrCat("the report has all before LSN ", report.place->lsn.value,
                   " at offset ", report.place->offset.value, " with chain ",
                   report.place->chain, ", and the medium leads to offset ",
                   cursor.position().offset.value, " with chain ",
                   cursor.position().chain));
}

void StateReportChecker::JudgeRecord(int machine, Lsn lsn,
                                     const recovery::ReportedRecord& record) {
  ++world_.counters().reports_checked;
  world_.checkers().damage.Named(machine, lsn);
  World::Model& pmem = *world_.machine(machine).pmem;
  const Ring place(nullptr, world_.options().ring_capacity);
  const uint64_t at = world_.layout().ring_offset + place.Place(record.offset);
  const std::byte* const medium = world_.Medium(machine).data() + at;
  RecordHeader header;
  std::memcpy(&header, medium, sizeof(header));
  uint64_t bytes = sizeof(header);
  // The payload of a cleaned or ABORTED one means nothing.
  if (header.type == static_cast<uint8_t>(RecordType::kData) &&
      !world_.history().IsCleaned(lsn)) {
    bytes += header.payload_bytes;
  }
  if (header.lsn == lsn.value && header.epoch == record.epoch.value &&
      header.header_crc == record.header_checksum &&
      bytes <= record.lines * kLineBytes &&
      AreOneRecord(pmem.region().data() + at, medium, bytes)) {
    return;
  }
  Violate(machine, "P-INV-7",
          absl::StrCat("the answer has LSN ", lsn.value, " of epoch ",
                       record.epoch.value, ", and a power cut could take it"));
}

}  // namespace alpheus::sim
