// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/choice_checker.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

using recovery::Verdict;

namespace {

struct Place {
  Verdict verdict = Verdict::kAbsent;
  std::optional<Epoch> epoch;  // of a have
};

// Returns the verdict of the runs; after them there is nothing.
Place PlaceAt(const recovery::StateReport& report, Lsn lsn) {
  if (report.repairing || lsn < report.head.lsn) {
    return {Verdict::kUnknown, std::nullopt};
  }
  if (lsn < report.start().lsn) {
    const EpochEntry* const owner = report.table.Owner(lsn);
    if (owner == nullptr) return {Verdict::kUnknown, std::nullopt};
    return {Verdict::kHave, owner->epoch};
  }
  for (const recovery::VerdictRun& run : report.runs) {
    if (lsn < run.first || lsn >= run.end) continue;
    if (run.verdict != Verdict::kHave) return {run.verdict, std::nullopt};
    return {run.verdict,
            report.records[run.first_record + (lsn - run.first)].epoch};
  }
  return {};
}

// The rule of P-A4.4, for an LSN that the table's last epoch owns: `previous`.
bool IsNack(const recovery::StateReport& report, Epoch previous, Lsn lsn) {
  if (report.suspect) return false;
  // It never acknowledged anything as a member (P-H16).
  if (report.blank) return true;
  const Place place = PlaceAt(report, lsn);
  switch (place.verdict) {
    case Verdict::kTorn:
    case Verdict::kAbsent:
      return true;
    // It never acknowledged what the previous epoch owns.
    case Verdict::kUnknown:
      return report.repairing && report.log_epoch < previous;
    case Verdict::kCorrupt:
      return report.log_epoch < previous;
    case Verdict::kHave:
      return report.log_epoch < previous && place.epoch != previous;
  }
  return false;
}

}  // namespace

void ChoiceChecker::Opened(Epoch epoch, Epoch previous, Lsn end,
                           const Configuration& found, int write_quorum) {
  const int needed = static_cast<int>(found.replica_count) - write_quorum + 1;
  int nacks = 0;
  std::string seen;
  for (const auto& [machine, report] : reports_[epoch]) {
    // It came too late, or the epochs were ranked wrongly: the history's.
    if (report.log_epoch > previous) return;
    const bool is_nack = Names(found, {report.node, report.incarnation}) &&
                         IsNack(report, previous, end);
    nacks += is_nack ? 1 : 0;
    absl::StrAppend(&seen, ", machine ", machine, " of log epoch ",
                    report.log_epoch.value, ": ",
                    recovery::VerdictName(PlaceAt(report, end).verdict));
  }
  // Reports of earlier epochs stay: a paused opener may show its log later.
  reports_.erase(epoch);
  if (nacks >= needed) return;
  oracle_.Violate(
      "P-INV-2",
      absl::StrCat("epoch ", epoch.value, " ends before LSN ", end.value,
                   " with ", nacks, " nacks, of ", needed, seen));
}

}  // namespace alpheus::sim
