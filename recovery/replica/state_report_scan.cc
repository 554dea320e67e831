// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/state_report_scan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "log/core/read/header_search.h"
#include "log/core/read/scan.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus::recovery {
namespace {

ReportedRecord Reported(const RecordView& record) {
  return {record.epoch(), record.offset, record.header.header_crc(),
          static_cast<uint32_t>(record.bytes / kLineBytes)};
}

// Turns torn and absent up to the proven LSN into corrupt (STR3).
void MarkCorrupt(StateReport* report) {
  std::vector<VerdictRun> runs;
  runs.swap(report->runs);
  const Lsn after_proven = report->proven_lsn + 1;
  const auto add = [report](Lsn first, Lsn end, Verdict verdict) {
    if (first < end) AddVerdict(report, verdict, end - first);
  };
  for (const VerdictRun& run : runs) {
    if (run.verdict == Verdict::kHave) {
      report->runs.push_back(run);
      continue;
    }
    const Lsn middle = std::clamp(after_proven, run.first, run.end);
    add(run.first, middle, Verdict::kCorrupt);
    add(middle, run.end, run.verdict);
  }
  const Lsn said =
      report->runs.empty() ? report->start().lsn : report->runs.back().end;
  add(said, after_proven, Verdict::kCorrupt);
}

// SSC2.
ScanInput InputOf(std::span<std::byte> region, const RegionState& state,
                  const StateReportOptions& options) {
  ScanInput input =
      OpeningScanOf(region, state, {}, options.read_whole_bytes_max);
  if (input.start != input.head && !HeadIsReadable(input)) {
    input.start = input.head;
  }
  return input;
}

}  // namespace

StateReportScan::StateReportScan(std::span<std::byte> region,
                                 const RegionState& state,
                                 const StateReportOptions& options)
    : state_(state),
      input_(InputOf(region, state_, options)),
      end_(std::min(input_.ceiling,
                    input_.head.offset + input_.ring.capacity())),
      cursor_(input_.ring, *input_.table, input_.start, end_) {
  const Superline& superline = state_.superline;
  report_.node = superline.node;
  report_.incarnation = superline.incarnation;
  report_.configuration = superline.configuration;
  report_.ring_capacity = superline.ring_capacity;
  report_.log_epoch = superline.log_epoch;
  report_.promised_before = superline.promised_epoch;
  report_.table = state_.table;
  report_.head = state_.head();
  report_.proven_lsn = state_.ProvenLsn();
  report_.blank = IsBlank(superline);
  report_.suspect = options.suspect;
  report_.repairing = superline.repairing;
  if (report_.knows() && input_.start != input_.head) {
    report_.place = input_.start;
  }
  is_done_ = !report_.knows();
}

bool StateReportScan::Continue(uint64_t bytes_max) {
  const RingOffset from = in_hole_ ? hole_at_ : cursor_.position().offset;
  const RingOffset until =
      from + std::min(std::max(bytes_max, kLineBytes), end_ - from);
  while (!is_done_) {
    if (!in_hole_) {
      if (!WalkRecords(until)) return false;
      in_hole_ = true;
      hole_at_ = cursor_.position().offset;
    } else if (!SkipHole(until)) {
      return false;
    }
    if (is_done_) MarkCorrupt(&report_);
  }
  return true;
}

// Returns true if the place has an unreadable header that began as that of the
// next record.
bool StateReportScan::LooksTorn() const {
  const LogPosition& at = cursor_.position();
  const EpochEntry* const owner = input_.table->Owner(at.lsn);
  if (owner == nullptr || at.offset + kLineBytes > end_) return false;
  RecordHeader header;
  std::memcpy(&header, input_.ring.At(at.offset), sizeof(header));
  return header.lsn == at.lsn.value && header.epoch == owner->epoch.value;
}

// Walks up to the next unreadable header; the last run then ends there. A
// record with a bad payload has a length, so that the walk continues after it.
// Returns false if the slice ends before.
bool StateReportScan::WalkRecords(RingOffset until) {
  for (;;) {
    const RecordCursor::Step step = cursor_.Next();
    if (step == RecordCursor::Step::kBadHeader) {
      if (LooksTorn()) AddVerdict(&report_, Verdict::kTorn);
      return true;
    }
    const RecordView& record = cursor_.record();
    report_.proven_lsn =
        std::max(report_.proven_lsn, Lsn(record.header.durable_lsn()));
    if (step == RecordCursor::Step::kRecord) {
      AddRecord(&report_, Reported(record));
    } else {
      AddVerdict(&report_, Verdict::kTorn);
    }
    if (cursor_.position().offset >= until && until < end_) return false;
  }
}

// Searches every line for the next valid header. Its LSN says how many records
// the hole has, as threads complete in any order. Returns false if the slice
// ends before.
bool StateReportScan::SkipHole(RingOffset until) {
  const Lsn first = cursor_.position().lsn;
  HeaderSearch search(input_.ring, *input_.table, end_);
  RecordView record;
  for (; search.Next(&hole_at_, std::min(until, end_), &record);
       hole_at_ = hole_at_ + kLineBytes) {
    if (record.lsn() <= first) continue;
    const Lsn said =
        report_.runs.empty() ? input_.start.lsn : report_.runs.back().end;
    AddVerdict(&report_, Verdict::kAbsent, record.lsn() - said);
    LogPosition next;
    next.lsn = record.lsn();
    next.offset = hole_at_;
    cursor_.Resume(next);
    in_hole_ = false;
    return true;
  }
  is_done_ = std::max(until, hole_at_) >= end_;
  return is_done_;
}

uint64_t StateReportScan::bytes_read() const {
  const RingOffset at = in_hole_ ? hole_at_ : cursor_.position().offset;
  return at - input_.start.offset;
}

StateReport ReportOfRegion(std::span<std::byte> region,
                           const RegionState& state,
                           const StateReportOptions& options) {
  StateReportScan scan(region, state, options);
  while (!scan.Continue(std::numeric_limits<uint64_t>::max())) {
  }
  return scan.Take();
}

}  // namespace alpheus::recovery
