// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/choice_checker.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {
namespace {

struct Place {
  Verdict verdict = Verdict::kAbsent;
  std::optional<Epoch> epoch;  // of a have
};

// What the runs say; behind them there is nothing.
Place PlaceAt(const Answer& answer, Lsn lsn) {
  if (answer.repairing || lsn < answer.head.lsn) {
    return {Verdict::kUnknown, std::nullopt};
  }
  for (const VerdictRun& run : answer.runs) {
    if (lsn < run.first || lsn >= run.end) continue;
    if (run.verdict != Verdict::kHave) return {run.verdict, std::nullopt};
    return {run.verdict, answer.held[run.held + (lsn - run.first)].epoch};
  }
  return {};
}

// The rule of P-A4.4, for an LSN that the table's last epoch owns: `previous`.
bool IsNack(const Answer& answer, Epoch previous, Lsn lsn) {
  if (answer.suspect) return false;
  // As a member it never acknowledged anything (P-H16).
  if (answer.blank) return true;
  const Place place = PlaceAt(answer, lsn);
  switch (place.verdict) {
    case Verdict::kTorn:
    case Verdict::kAbsent:
      return true;
    // It never acknowledged what the previous epoch owns.
    case Verdict::kUnknown:
      return answer.repairing && answer.log_epoch < previous;
    case Verdict::kCorrupt:
      return answer.log_epoch < previous;
    case Verdict::kHave:
      return answer.log_epoch < previous && place.epoch != previous;
  }
  return false;
}

}  // namespace

void ChoiceChecker::Opened(Epoch epoch, Epoch previous, Lsn end,
                           const Configuration& found, int write_quorum) {
  const int needed = static_cast<int>(found.replica_count) - write_quorum + 1;
  int nacks = 0;
  std::string seen;
  for (const auto& [machine, answer] : answers_[epoch]) {
    // It came too late, or the epochs were ranked wrongly: the history's.
    if (answer.log_epoch > previous) return;
    const bool is_nack = Names(found, {answer.node, answer.incarnation}) &&
                         IsNack(answer, previous, end);
    nacks += is_nack ? 1 : 0;
    absl::StrAppend(&seen, ", machine ", machine, " of log epoch ",
                    answer.log_epoch.value, ": ",
                    VerdictName(PlaceAt(answer, end).verdict));
  }
  // Those of epochs before stay: whoever stood still may show its log later.
  answers_.erase(epoch);
  if (nacks >= needed) return;
  referee_.Violate(
      "P-INV-2",
      absl::StrCat("epoch ", epoch.value, " ends before LSN ", end.value,
                   " with ", nacks, " nacks, of ", needed, seen));
}

}  // namespace alpheus::sim
