// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/answer_scan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "log/core/read/header_search.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus {
namespace {

HeldRecord Held(const RecordView& record) {
  return {record.epoch(), record.offset, record.header.header_crc(),
          static_cast<uint32_t>(record.bytes / kLineBytes)};
}

// Turns torn and absent up to the proven LSN into corrupt (AN3).
void MarkCorrupt(Answer* answer) {
  std::vector<VerdictRun> runs;
  runs.swap(answer->runs);
  const Lsn behind_proven = answer->proven_lsn + 1;
  const auto add = [answer](Lsn first, Lsn end, Verdict verdict) {
    if (first < end) AddVerdict(answer, verdict, end - first);
  };
  for (const VerdictRun& run : runs) {
    if (run.verdict == Verdict::kHave) {
      answer->runs.push_back(run);
      continue;
    }
    const Lsn middle = std::clamp(behind_proven, run.first, run.end);
    add(run.first, middle, Verdict::kCorrupt);
    add(middle, run.end, run.verdict);
  }
  const Lsn said =
      answer->runs.empty() ? answer->head.lsn : answer->runs.back().end;
  add(said, behind_proven, Verdict::kCorrupt);
}

}  // namespace

AnswerScan::AnswerScan(std::span<std::byte> region, const RegionState& state,
                       const AnswerOptions& options)
    : state_(state),
      input_(ScanInputOf(region, state_)),
      limit_(input_.head.offset + input_.ring.capacity()),
      cursor_(input_.ring, *input_.table, input_.head, limit_) {
  const Superline& superline = state_.superline;
  answer_.node = superline.node;
  answer_.incarnation = superline.incarnation;
  answer_.configuration = superline.configuration;
  answer_.ring_capacity = superline.ring_capacity;
  answer_.log_epoch = superline.log_epoch;
  answer_.promised_before = superline.promised_epoch;
  answer_.table = state_.table;
  answer_.head = state_.head();
  answer_.proven_lsn = state_.ProvenLsn();
  answer_.blank = IsBlank(superline);
  answer_.suspect = options.suspect;
  answer_.repairing = superline.repairing;
  is_done_ = !answer_.knows();
}

bool AnswerScan::Continue(uint64_t bytes_max) {
  const RingOffset from = in_hole_ ? hole_at_ : cursor_.position().offset;
  const RingOffset until =
      from + std::min(std::max(bytes_max, kLineBytes), limit_ - from);
  while (!is_done_) {
    if (!in_hole_) {
      if (!WalkRecords(until)) return false;
      in_hole_ = true;
      hole_at_ = cursor_.position().offset;
    } else if (!SkipHole(until)) {
      return false;
    }
    if (is_done_) MarkCorrupt(&answer_);
  }
  return true;
}

// Returns true if the place has an unreadable header that began as that of the
// next record.
bool AnswerScan::LooksTorn() const {
  const LogPosition& at = cursor_.position();
  const EpochEntry* const owner = input_.table->Owner(at.lsn);
  if (owner == nullptr || at.offset + kLineBytes > limit_) return false;
  RecordHeader header;
  std::memcpy(&header, input_.ring.At(at.offset), sizeof(header));
  return header.lsn == at.lsn.value && header.epoch == owner->epoch.value;
}

// Walks up to the next unreadable header; the last run then ends there. A
// record with a bad payload has a length, so that the walk continues after it.
// Returns false if the slice ends before.
bool AnswerScan::WalkRecords(RingOffset until) {
  for (;;) {
    const RecordCursor::Step step = cursor_.Next();
    if (step == RecordCursor::Step::kBadHeader) {
      if (LooksTorn()) AddVerdict(&answer_, Verdict::kTorn);
      return true;
    }
    const RecordView& record = cursor_.record();
    answer_.proven_lsn =
        std::max(answer_.proven_lsn, Lsn(record.header.durable_lsn()));
    if (step == RecordCursor::Step::kRecord) {
      AddHeld(&answer_, Held(record));
    } else {
      AddVerdict(&answer_, Verdict::kTorn);
    }
    if (cursor_.position().offset >= until && until < limit_) return false;
  }
}

// Searches every line for the next valid header. Its LSN says how many records
// the hole has, as threads complete in any order. Returns false if the slice
// ends before.
bool AnswerScan::SkipHole(RingOffset until) {
  const Lsn first = cursor_.position().lsn;
  HeaderSearch search(input_.ring, *input_.table, limit_);
  RecordView record;
  for (; search.Next(&hole_at_, until, &record);
       hole_at_ = hole_at_ + kLineBytes) {
    if (record.lsn() <= first) continue;
    const Lsn said =
        answer_.runs.empty() ? input_.head.lsn : answer_.runs.back().end;
    AddVerdict(&answer_, Verdict::kAbsent, record.lsn() - said);
    LogPosition next;
    next.lsn = record.lsn();
    next.offset = hole_at_;
    cursor_.Resume(next);
    in_hole_ = false;
    return true;
  }
  is_done_ = until == limit_;
  return is_done_;
}

Answer AnswerOfRegion(std::span<std::byte> region, const RegionState& state,
                      const AnswerOptions& options) {
  AnswerScan scan(region, state, options);
  while (!scan.Continue(std::numeric_limits<uint64_t>::max())) {
  }
  return scan.Take();
}

}  // namespace alpheus
