// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/repair_plan.h"

#include <algorithm>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "recovery/opening/extents.h"

namespace alpheus::recovery {
namespace {

class Planner {
 public:
  Planner(const quorum::QuorumSizes& sizes, const Decision& decision,
          std::span<const StateReport> reports)
      : sizes_(sizes), decision_(decision), reports_(reports) {}

  RepairPlan Run(const NewEpoch& next) const;

 private:
  ReplicaRepair Repair(size_t index) const;
  bool OverwritesValid(size_t index, const ReplicaRepair& repair) const;
  std::vector<Extent> Written(const std::vector<CopyRun>& copies) const;
  std::vector<Extent> ValidOthers(size_t index) const;
  void AddUnnamedOthers(size_t index, std::vector<Extent>* valid) const;
  EpochTable Table(const NewEpoch& next) const;
  std::vector<ReplicaRepair> Order(
      const std::vector<ReplicaRepair>& repairs) const;
  ReplicaRepair NewcomersRepair(size_t index) const;

  const quorum::QuorumSizes sizes_;
  const Decision& decision_;
  const std::span<const StateReport> reports_;
};

// Returns the bytes that the copies store: records, and the header's line of
// each PAD.
std::vector<Extent> Planner::Written(const std::vector<CopyRun>& copies) const {
  std::vector<Extent> written;
  auto copy = copies.begin();
  RingOffset at = decision_.head.offset;
  for (const KeptRun& run : decision_.kept) {
    if (run.unread) {
      while (copy != copies.end() && copy->end <= run.first) ++copy;
      if (copy != copies.end() && copy->first <= run.first) {
        AddExtent(run.unread->begin, run.unread->end, &written);
      }
      at = run.unread->end;
      continue;
    }
    for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
      const ReportedRecord& record = RecordAt(reports_, run, lsn);
      while (copy != copies.end() && copy->end <= lsn) ++copy;
      if (copy != copies.end() && copy->first <= lsn) {
        if (at != record.offset) AddExtent(at, at + kLineBytes, &written);
        AddExtent(record.offset, record.end(), &written);
      }
      at = record.end();
    }
  }
  return written;
}

// Returns the records up to the end that the replica takes for valid and that
// are not chosen: other identities, and records before the head.
std::vector<Extent> Planner::ValidOthers(size_t index) const {
  const StateReport& report = reports_[index];
  std::vector<Extent> valid;
  AddUnnamedOthers(index, &valid);
  auto kept = decision_.kept.begin();
  for (const VerdictRun& run : report.runs) {
    if (run.verdict != Verdict::kHave) continue;
    for (Lsn lsn = run.first; lsn < std::min(run.end, decision_.end.lsn);
         lsn = lsn + 1) {
      while (kept != decision_.kept.end() && kept->end <= lsn) ++kept;
      const bool chosen = lsn >= decision_.head.lsn &&
                          kept != decision_.kept.end() &&
                          Contains(kept->holders, index);
      if (chosen) continue;
      const ReportedRecord& record =
          report.records[run.first_record + (lsn - run.first)];
      AddExtent(record.offset, record.end(), &valid);
    }
  }
  return valid;
}

// Adds the bytes before the report's start that are not chosen: before the
// chosen head, and after the shared place.
void Planner::AddUnnamedOthers(size_t index, std::vector<Extent>* valid) const {
  const StateReport& report = reports_[index];
  const LogPosition& start = report.start();
  if (start == report.head) return;
  const LogPosition& head = decision_.head;
  const LogPosition& shared = decision_.shared[index];
  const RingOffset before = std::min(head.offset, start.offset);
  if (report.head.offset < before) {
    AddExtent(report.head.offset, before, valid);
  }
  const RingOffset after = std::max(shared.offset, report.head.offset);
  if (head.lsn < start.lsn && after < start.offset) {
    AddExtent(after, start.offset, valid);
  }
}

bool Planner::OverwritesValid(size_t index, const ReplicaRepair& repair) const {
  const StateReport& report = reports_[index];
  if (!report.knows()) return !repair.copies.empty();
  const std::vector<Extent> valid = ValidOthers(index);
  if (valid.empty()) return false;
  return AnyOverlap(Written(repair.copies), valid, report.ring_capacity);
}

ReplicaRepair Planner::Repair(size_t index) const {
  ReplicaRepair repair;
  repair.report = index;
  for (const KeptRun& run : decision_.kept) {
    if (Contains(run.holders, index)) continue;
    repair.copies.push_back({run.first, run.end, run.holders});
  }
  repair.destructive = OverwritesValid(index, repair);
  repair.set_repairing = repair.destructive && !reports_[index].repairing;
  return repair;
}

// RPL3.
ReplicaRepair Planner::NewcomersRepair(size_t index) const {
  ReplicaRepair repair;
  repair.report = index;
  repair.is_newcomer = true;
  for (const KeptRun& run : decision_.kept) {
    repair.copies.push_back({run.first, run.end, run.holders});
  }
  return repair;
}

// Extensions first, newcomers last, each in the order of the reports.
std::vector<ReplicaRepair> Planner::Order(
    const std::vector<ReplicaRepair>& repairs) const {
  const auto place = [](const ReplicaRepair& repair) {
    return repair.is_newcomer ? 2 : repair.destructive ? 1 : 0;
  };
  std::vector<ReplicaRepair> ordered;
  for (const int now : {0, 1, 2}) {
    for (const ReplicaRepair& repair : repairs) {
      if (place(repair) == now) ordered.push_back(repair);
    }
  }
  for (size_t i = 0; i < ordered.size(); ++i) {
    ordered[i].after_write_quorum =
        ordered[i].destructive && i >= sizes_.write_quorum;
  }
  return ordered;
}

// Returns E's table with the new epoch. Entries that start beyond the end own
// nothing: their epochs were installed on fewer than W replicas.
EpochTable Planner::Table(const NewEpoch& next) const {
  const LogPosition& end = decision_.end;
  EpochTable table = EpochTable::Empty(next.log_id);
  for (const EpochEntry& entry : decision_.table.entries()) {
    if (entry.start_lsn < end.lsn) table = table.With(entry, Lsn(0));
  }
  return table.With({next.epoch, next.nonce, end.lsn, end.offset, end.chain},
                    decision_.head.lsn);
}

RepairPlan Planner::Run(const NewEpoch& next) const {
  ALPHEUS_CHECK(decision_.outcome == Outcome::kChosen,
                "only what is chosen is installed (P-A4.5)");
  ALPHEUS_CHECK(decision_.epoch < next.epoch,
                "a ballot is greater than all before (P-A4.1)");
  RepairPlan plan;
  plan.table = Table(next);
  for (size_t i = 0; i < reports_.size(); ++i) {
    const bool is_member = Contains(decision_.members, i);
    const bool is_named =
        Names(next.configuration, {reports_[i].node, reports_[i].incarnation});
    if (is_member && is_named) {
      plan.repairs.push_back(Repair(i));
    } else if (is_named && reports_[i].blank && !reports_[i].suspect) {
      plan.repairs.push_back(NewcomersRepair(i));
    } else if (reports_[i].blank) {
      plan.to_resync.push_back(i);
    }
  }
  plan.repairs = Order(plan.repairs);
  return plan;
}

}  // namespace

RepairPlan PlanRepair(const quorum::QuorumSizes& sizes,
                      const Decision& decision,
                      std::span<const StateReport> reports,
                      const NewEpoch& next) {
  return Planner(sizes, decision, reports).Run(next);
}

bool CopiesUnread(const RepairPlan& plan, const Decision& decision,
                  std::span<const StateReport> reports) {
  const bool any_unread = std::ranges::any_of(
      decision.kept, [](const KeptRun& run) { return run.unread.has_value(); });
  return any_unread &&
         std::ranges::any_of(plan.repairs, [&](const ReplicaRepair& repair) {
           return !repair.is_newcomer && !reports[repair.report].knows();
         });
}

}  // namespace alpheus::recovery
