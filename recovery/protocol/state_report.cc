// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/state_report.h"

#include <algorithm>

namespace alpheus::recovery {

bool IsBlank(const Superline& superline) {
  return !Names(superline.configuration,
                {superline.node, superline.incarnation});
}

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHave:
      return "have";
    case Verdict::kTorn:
      return "torn";
    case Verdict::kAbsent:
      return "absent";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

void AddVerdict(StateReport* report, Verdict verdict, uint64_t count) {
  if (count == 0) return;
  std::vector<VerdictRun>& runs = report->runs;
  const Lsn first = runs.empty() ? report->head.lsn : runs.back().end;
  if (!runs.empty() && runs.back().verdict == verdict) {
    runs.back().end = first + count;
    return;
  }
  runs.push_back({first, first + count, verdict, report->records.size()});
}

void AddRecord(StateReport* report, const ReportedRecord& record) {
  AddVerdict(report, Verdict::kHave);
  report->records.push_back(record);
}

VerdictReader::Seen VerdictReader::At(Lsn lsn) {
  const bool knows = report_->knows();
  if (!knows || lsn < report_->head.lsn) {
    return {Verdict::kUnknown, nullptr, knows ? report_->head.lsn : kEndOfLsns};
  }
  const std::vector<VerdictRun>& runs = report_->runs;
  while (run_ < runs.size() && runs[run_].end <= lsn) ++run_;
  Seen seen{Verdict::kAbsent, nullptr, kEndOfLsns};
  if (run_ < runs.size()) {
    seen.verdict = runs[run_].verdict;
    seen.end = runs[run_].end;
  }
  if (seen.verdict == Verdict::kHave) {
    seen.record =
        &report_->records[runs[run_].first_record + (lsn - runs[run_].first)];
  } else if (seen.verdict != Verdict::kUnknown && lsn <= report_->proven_lsn) {
    seen.verdict = Verdict::kCorrupt;
    seen.end = std::min(seen.end, report_->proven_lsn + 1);
  }
  return seen;
}

}  // namespace alpheus::recovery
