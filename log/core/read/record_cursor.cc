// SPDX-License-Identifier: Apache-2.0
#include "log/core/read/record_cursor.h"

#include <atomic>
#include <cstring>

namespace alpheus {

RecordCursor::Step RecordCursor::Next() {
  const RingOffset begin = position_.offset;
  // A record needs a line of its own before the limit (RC3).
  if (begin + kLineBytes > limit_) return Step::kBadHeader;
  if (!owner_.Owns(position_.lsn) && !FindOwner(position_.lsn, &owner_)) {
    return Step::kBadHeader;
  }
  if (ReadRecordHeader(owner_, position_.lsn, begin, ring_.data() + place_,
                       place_, &record_)) [[likely]] {
    return Pass(begin, /*pad_damaged=*/false);
  }
  return NextAfterPad();
}

// Three cases: a PAD is here; one was here and can't be read (RC2); nothing is.
RecordCursor::Step RecordCursor::NextAfterPad() {
  const RingOffset begin = position_.offset;
  if (place_ == 0) return Step::kBadHeader;
  RecordView pad;
  const bool has_pad =
      ReadHeader(owner_, position_.lsn, begin, ring_.data() + place_, &pad) &&
      pad.is_pad();
  const RingOffset wrapped = begin + ring_.UntilEnd(begin);
  if (wrapped + kLineBytes > limit_ ||
      !ReadRecordHeader(owner_, position_.lsn, wrapped, ring_.data(), 0,
                        &record_)) {
    return Step::kBadHeader;
  }
  place_ = 0;
  return Pass(begin, /*pad_damaged=*/!has_pad);
}

RecordCursor::Step RecordCursor::Pass(RingOffset begin, bool pad_damaged) {
  const uint64_t bytes = record_.bytes;
  record_begin_ = begin;
  pad_damaged_ = pad_damaged;
  position_.lsn = position_.lsn + 1;
  position_.offset = record_.offset + bytes;
  if (payloads_ != Payloads::kTrust) {
    position_.chain = ExtendChain(position_.chain, record_.header.header_crc());
  }
  place_ += bytes;
  if (place_ == ring_.capacity()) place_ = 0;
  const bool check = payloads_ == Payloads::kCheck && !record_.cleaned;
  if (check && !PayloadIsValid(record_.seed, record_.header, record_.payload)) {
    return Step::kBadPayload;
  }
  return Step::kRecord;
}

bool RecordCursor::ReadAnyHeader(RingOffset offset, const std::byte* line,
                                 RecordView* record) const {
  if (offset + kLineBytes > limit_) return false;
  // Cheap test first: most lines are no headers.
  uint16_t magic = 0;
  std::memcpy(&magic, line + offsetof(RecordHeader, magic), sizeof(magic));
  if (magic != kRecordMagic) return false;
  // The LSN that was read is only a candidate: the checksum is seeded with it.
  uint64_t read_lsn = 0;
  std::memcpy(&read_lsn, line, sizeof(read_lsn));
  Owner owner;
  return FindOwner(Lsn(read_lsn), &owner) &&
         ReadRecordHeader(owner, Lsn(read_lsn), offset, line,
                          ring_.Place(offset), record);
}

bool RecordCursor::FindOwner(Lsn lsn, Owner* owner) const {
  const EpochEntry* entry = table_.Owner(lsn);
  if (entry == nullptr) return false;
  owner->first = entry->start_lsn;
  owner->end = table_.EndOf(entry);
  owner->epoch = entry->epoch;
  owner->key = table_.KeyOf(entry);
  return true;
}

}  // namespace alpheus
