// SPDX-License-Identifier: Apache-2.0
#include "recovery/scrub/ring_scrub.h"

#include <algorithm>
#include <utility>

#include "log/core/read/header_search.h"

namespace alpheus::recovery {
namespace {

bool HasBadCleanedWord(const RecordView& record) {
  return record.header.cleaned() != 0 && !record.cleaned;
}

}  // namespace

RingScrub::RingScrub(Ring ring, EpochTable table, const LogPosition& head,
                     Lsn last)
    : ring_(ring),
      table_(std::move(table)),
      last_(last),
      limit_(head.offset + ring.capacity()),
      cursor_(ring_, table_, head, limit_) {}

bool RingScrub::MoveHead(const LogPosition& head) {
  const bool has_left = has_finding_ && finding_.at.lsn < head.lsn;
  if (has_left) has_finding_ = false;
  if (cursor_.position().lsn < head.lsn) {
    in_hole_ = false;
    cursor_.Resume(head);
    is_chained_ = true;
  }
  return !has_left;
}

RingScrub::Step RingScrub::Continue(uint64_t bytes_max) {
  const RingOffset from = in_hole_ ? hole_at_ : cursor_.position().offset;
  const RingOffset until =
      from + std::min(std::max(bytes_max, kLineBytes), limit_ - from);
  return in_hole_ ? SkipHole(until) : Walk(until);
}

void RingScrub::Count(const RecordView& record) {
  ++records_;
  bytes_ += record.bytes;
}

RingScrub::Step RingScrub::Found(RingDamage kind, const LogPosition& at,
                                 RingOffset record) {
  has_finding_ = true;
  finding_ = {kind, at, at.lsn + 1, cursor_.position().offset, record};
  return Step::kFinding;
}

// At an epoch's start the table knows the chain, whatever came before.
bool RingScrub::LeadsToTheStart() {
  const LogPosition at = cursor_.position();
  const EpochEntry* const owner = table_.Owner(at.lsn);
  if (owner == nullptr || owner->start_lsn != at.lsn) return true;
  const LogPosition start{owner->start_lsn, owner->start_offset,
                          owner->start_chain};
  if (at == start) return true;
  cursor_.Resume(start);
  return !std::exchange(is_chained_, true);
}

// Walks records of one epoch without a PAD, in one tight loop. Returns true if
// one of them has an invalid CLEANED word.
bool RingScrub::WalkPlain(RingOffset until) {
  bool is_word_bad = false;
  LogPosition bad;
  RingOffset record;
  cursor_.WalkPlain(
      [&](const LogPosition& at, const RecordView& view) {
        is_word_bad = HasBadCleanedWord(view);
        if (!is_word_bad) {
          Count(view);
          return at.lsn < last_;
        }
        bad = at;
        record = view.offset;
        return false;
      },
      until);
  if (is_word_bad) Found(RingDamage::kCleanedWord, bad, record);
  return is_word_bad;
}

RingScrub::Step RingScrub::Walk(RingOffset until) {
  while (cursor_.position().lsn <= last_) {
    if (WalkPlain(until)) return Step::kFinding;
    const LogPosition before = cursor_.position();
    if (before.lsn > last_) break;
    if (!LeadsToTheStart()) {
      return Found(RingDamage::kChain, before, before.offset);
    }
    if (before.offset >= until && until < limit_) return Step::kMore;
    const RecordCursor::Step step = cursor_.Next();
    const RecordView& record = cursor_.record();
    if (step == RecordCursor::Step::kBadHeader) {
      in_hole_ = true;
      hole_at_ = before.offset;
      return Step::kMore;
    }
    if (step == RecordCursor::Step::kBadPayload) {
      return Found(RingDamage::kPayload, before, record.offset);
    }
    if (cursor_.pad_damaged()) {
      return Found(RingDamage::kPad, before, record.offset);
    }
    if (HasBadCleanedWord(record)) {
      return Found(RingDamage::kCleanedWord, before, record.offset);
    }
    Count(record);
  }
  return Step::kDone;
}

// Searches every line for the next valid header, which says how many records
// are unreadable.
RingScrub::Step RingScrub::SkipHole(RingOffset until) {
  const LogPosition first = cursor_.position();
  HeaderSearch search(ring_, table_, limit_);
  RecordView record;
  bool is_found = search.Next(&hole_at_, until, &record);
  while (is_found && record.lsn() <= first.lsn) {
    hole_at_ = hole_at_ + kLineBytes;
    is_found = search.Next(&hole_at_, until, &record);
  }
  if (!is_found && until < limit_) return Step::kMore;
  in_hole_ = false;
  Found(RingDamage::kHeaders, first, first.offset);
  const bool is_to_the_end = !is_found || record.lsn() > last_;
  finding_.end_lsn = is_to_the_end ? last_ + 1 : record.lsn();
  finding_.end_offset = std::min(hole_at_, limit_);
  return Step::kFinding;
}

void RingScrub::GoBack() {
  has_finding_ = false;
  cursor_.Resume(finding_.at);
}

// The walk is already past findings of other kinds.
void RingScrub::PassOver() {
  has_finding_ = false;
  if (finding_.kind != RingDamage::kHeaders) return;
  LogPosition after;
  after.lsn = finding_.end_lsn;
  after.offset = finding_.end_offset;
  cursor_.Resume(after);
  is_chained_ = false;
}

}  // namespace alpheus::recovery
