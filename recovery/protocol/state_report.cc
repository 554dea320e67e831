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
  const Lsn first = runs.empty() ? report->start().lsn : runs.back().end;
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

const ReportedRecord* FindRecord(const StateReport& report, Lsn lsn) {
  const auto after =
      std::upper_bound(report.runs.begin(), report.runs.end(), lsn,
                       [](Lsn l, const VerdictRun& r) { return l < r.first; });
  if (after == report.runs.begin()) return nullptr;
  const VerdictRun& in = *(after - 1);
  if (in.verdict != Verdict::kHave || lsn >= in.end) return nullptr;
  return &report.records[in.first_record + (lsn - in.first)];
}

LogPosition SharedPlace(const EpochTable& own, const LogPosition& place,
                        const EpochTable& table, const LogPosition& from) {
  LogPosition shared = from;
  while (shared.lsn < place.lsn) {
    const EpochEntry* const mine = own.Owner(shared.lsn);
    const EpochEntry* const owner = table.Owner(shared.lsn);
    if (mine == nullptr || owner == nullptr || mine->epoch != owner->epoch) {
      break;
    }
    const Lsn end = std::min(own.EndOf(mine), table.EndOf(owner));
    if (end >= place.lsn) return place;
    // An epoch starts there, in one table at least.
    const EpochEntry* next = table.Owner(end);
    if (next->start_lsn != end) next = own.Owner(end);
    shared = {next->start_lsn, next->start_offset, next->start_chain};
  }
  return shared;
}

VerdictReader::Seen VerdictReader::At(Lsn lsn) {
  const bool knows = report_->knows();
  if (!knows || lsn < report_->head.lsn) {
    return {Verdict::kUnknown, nullptr, Epoch(0),
            knows ? report_->head.lsn : kEndOfLsns};
  }
  const Lsn start = report_->start().lsn;
  if (lsn < start) {
    const EpochEntry* const owner = report_->table.Owner(lsn);
    if (owner == nullptr) return {Verdict::kUnknown, nullptr, Epoch(0), start};
    return {Verdict::kHave, nullptr, owner->epoch,
            std::min(start, report_->table.EndOf(owner))};
  }
  const std::vector<VerdictRun>& runs = report_->runs;
  while (run_ < runs.size() && runs[run_].end <= lsn) ++run_;
  Seen seen{Verdict::kAbsent, nullptr, Epoch(0), kEndOfLsns};
  if (run_ < runs.size()) {
    seen.verdict = runs[run_].verdict;
    seen.end = runs[run_].end;
  }
  if (seen.verdict == Verdict::kHave) {
    seen.record =
        &report_->records[runs[run_].first_record + (lsn - runs[run_].first)];
    seen.epoch = seen.record->epoch;
  } else if (seen.verdict != Verdict::kUnknown && lsn <= report_->proven_lsn) {
    seen.verdict = Verdict::kCorrupt;
    seen.end = std::min(seen.end, report_->proven_lsn + 1);
  }
  return seen;
}

}  // namespace alpheus::recovery
