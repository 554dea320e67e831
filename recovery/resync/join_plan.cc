// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/join_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"

namespace alpheus::recovery {
namespace {

bool IsTheSame(const ReportedRecord& reported, const RecordView& own) {
  return reported.epoch == own.epoch() && reported.offset == own.offset &&
         reported.header_checksum == own.header.header_crc() &&
         reported.lines * kLineBytes == own.bytes;
}

}  // namespace

absl::Status CheckJoins(const RunningEpoch& running, uint64_t ring_capacity,
                        const StateReport& report) {
  const std::vector<Member>& members = running.configuration.members;
  const bool is_member =
      std::find(members.begin(), members.end(),
                Member{report.node, report.incarnation}) != members.end();
  if (!is_member) {
    return absl::FailedPreconditionError(
        absl::StrCat("incarnation ", absl::Hex(report.incarnation),
                     " is not a member of the log's configuration ",
                     running.configuration.id,
                     ": its medium was replaced. Replace the member"));
  }
  if (report.ring_capacity != ring_capacity) {
    return absl::FailedPreconditionError(
        absl::StrCat("a ring of ", report.ring_capacity, " bytes, expected ",
                     ring_capacity, " as the log's. Replace the member"));
  }
  return absl::OkStatus();
}

JoinPlanner::JoinPlanner(Ring ring, RunningEpoch running, StateReport report)
    : ring_(ring),
      running_(std::move(running)),
      report_(std::move(report)),
      shared_(Shared()),
      cursor_(ring_, running_.table, running_.head, running_.finished.offset,
              RecordCursor::Payloads::kSkip),
      verdicts_(report_) {
  KeepShared();
}

// Returns the last place up to which the replica has the primary's records and
// needs none of them; the head if there is none.
LogPosition JoinPlanner::Shared() const {
  const LogPosition& head = running_.head;
  if (!report_.knows() || head.lsn < report_.head.lsn) return head;
  LogPosition shared =
      SharedPlace(report_.table, report_.start(), running_.table, head);
  // The last records of this primary may not be finished in its own ring. A
  // place that can't be in it comes from a faulty program, and is not believed.
  const bool is_possible =
      shared.lsn <= running_.finished.lsn + 1 && shared.offset >= head.offset &&
      shared.offset <= running_.finished.offset &&
      shared.lsn - head.lsn <= (shared.offset - head.offset) / kLineBytes;
  if (!is_possible) shared = head;
  // The replica must not be asked to install more than its epoch's start.
  if (!is_of_this_epoch() && shared.lsn > running_.start.lsn) {
    shared = running_.start;
  }
  return shared;
}

void JoinPlanner::KeepShared() {
  if (shared_.lsn <= running_.head.lsn) return;
  kept_.push_back({running_.head.lsn, shared_.lsn, Verdict::kHave, 0});
  cursor_.Resume(shared_);
}

// JP2.
Lsn JoinPlanner::MustHave() const {
  if (!is_of_this_epoch()) return running_.start.lsn - 1;
  if (report_.knows()) return report_.proven_lsn;
  return std::max(report_.proven_lsn, running_.durable_lsn);
}

bool JoinPlanner::EndsBefore(Lsn lsn, bool has) const {
  if (lsn > running_.finished.lsn) return true;
  if (lsn <= MustHave()) return false;
  return !has || !is_of_this_epoch();
}

absl::StatusOr<bool> JoinPlanner::Continue(uint64_t bytes_max) {
  if (MustHave() > running_.finished.lsn) {
    return absl::DataLossError(absl::StrCat(
        "reports LSN ", MustHave().value, " of epoch ", running_.epoch.value,
        ", in which LSN ", running_.finished.lsn.value,
        " is the last. Look at that replica"));
  }
  const RingOffset until = cursor_.position().offset + bytes_max;
  do {
    const LogPosition before = cursor_.position();
    const VerdictReader::Seen seen = verdicts_.At(before.lsn);
    // Without a record there, the rest of the ring need not be read.
    if (EndsBefore(before.lsn, seen.verdict == Verdict::kHave)) {
      plan_.next = before;
      Finish();
      return true;
    }
    if (cursor_.Next() != RecordCursor::Step::kRecord) {
      return Unreadable(before);
    }
    const RecordView& own = cursor_.record();
    const bool is_the_same =
        seen.record != nullptr
            ? IsTheSame(*seen.record, own)
            : seen.verdict == Verdict::kHave && seen.epoch == own.epoch();
    if (is_the_same) {
      Keep(before.lsn);
    } else if (EndsBefore(before.lsn, /*has=*/false)) {
      plan_.next = before;
      Finish();
      return true;
    } else {
      Copy(cursor_.record_begin(), own);
    }
  } while (cursor_.position().offset < until);
  return false;
}

absl::Status JoinPlanner::Unreadable(const LogPosition& at) const {
  if (at == shared_ && shared_.lsn > running_.head.lsn) {
    return absl::DataLossError(absl::StrCat(
        "its place, LSN ", at.lsn.value, " at ring offset ", at.offset.value,
        ", is none in the primary's own ring: that record can't be read here, "
        "or the replica is of another history. Scrub the primary's replica; if "
        "that finds nothing, replace the member"));
  }
  return absl::DataLossError(absl::StrCat(
      "LSN ", at.lsn.value, " at ring offset ", at.offset.value,
      " can't be read any more in the primary's own ring, so no replica can "
      "join from it. Scrubbing repairs it from a member in sync"));
}

void JoinPlanner::Keep(Lsn lsn) {
  if (kept_.empty() || kept_.back().end != lsn) {
    kept_.push_back({lsn, lsn, Verdict::kHave, 0});
  }
  kept_.back().end = lsn + 1;
}

void JoinPlanner::Copy(RingOffset begin, const RecordView& record) {
  const uint64_t capacity = ring_.capacity();
  if (begin != record.offset) {
    AddRange(begin, kLineBytes, 0, capacity, &plan_.copies);
    AddExtent(begin, begin + kLineBytes, &written_);
  }
  AddRange(record.offset, record.bytes, 0, capacity, &plan_.copies);
  AddExtent(record.offset, record.offset + record.bytes, &written_);
  ++plan_.records;
}

// Returns the replica's records before next that are not kept.
std::vector<Extent> JoinPlanner::ValidOthers() const {
  std::vector<Extent> valid;
  AddUnnamedOthers(&valid);
  auto kept = kept_.begin();
  for (const VerdictRun& run : report_.runs) {
    if (run.verdict != Verdict::kHave) continue;
    const Lsn end = std::min(run.end, plan_.next.lsn);
    for (Lsn lsn = run.first; lsn < end; lsn = lsn + 1) {
      while (kept != kept_.end() && kept->end <= lsn) ++kept;
      if (kept != kept_.end() && kept->first <= lsn) continue;
      const ReportedRecord& record =
          report_.records[run.first_record + (lsn - run.first)];
      AddExtent(record.offset, record.end(), &valid);
    }
  }
  return valid;
}

// Adds the replica's records before its report's start that are not kept.
void JoinPlanner::AddUnnamedOthers(std::vector<Extent>* valid) const {
  const LogPosition& start = report_.start();
  if (start == report_.head) return;
  const RingOffset head = running_.head.offset;
  const bool is_shared = shared_.lsn > running_.head.lsn;
  const RingOffset before =
      is_shared ? std::min(head, start.offset) : start.offset;
  if (report_.head.offset < before) {
    AddExtent(report_.head.offset, before, valid);
  }
  if (is_shared && shared_.offset < start.offset) {
    AddExtent(shared_.offset, start.offset, valid);
  }
}

bool JoinPlanner::OverwritesValid() const {
  if (plan_.copies.empty()) return false;
  if (!report_.knows()) return true;
  return AnyOverlap(written_, ValidOthers(), ring_.capacity());
}

// JP3.
void JoinPlanner::Finish() {
  plan_.set_repairing =
      !is_of_this_epoch() && !report_.repairing && OverwritesValid();
  if (!written_.empty()) plan_.written_end = written_.back().end;
}

}  // namespace alpheus::recovery
