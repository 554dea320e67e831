// SPDX-License-Identifier: Apache-2.0
#include "log/core/record_cursor.h"

#include <atomic>
#include <cstring>

namespace alpheus {
namespace {

bool IsPad(const RecordHeader& header) {
  return header.type == static_cast<uint8_t>(RecordType::kPad);
}

}  // namespace

RecordCursor::Step RecordCursor::Next() {
  const RingOffset begin = position_.offset;
  // A record needs a line of its own before the limit (U3).
  if (begin + kLineBytes > limit_) return Step::kBadHeader;
  if (ReadRecordHeader(position_.lsn, begin, &record_)) {
    return Take(begin, /*pad_damaged=*/false);
  }
  if (ring_.Place(begin) == 0) return Step::kBadHeader;
  // Either a PAD is here, or it was and can't be read (U2), or nothing is.
  RecordView pad;
  const bool has_pad =
      ReadHeader(position_.lsn, begin, &pad) && IsPad(pad.header);
  const RingOffset wrapped = begin + ring_.UntilEnd(begin);
  if (wrapped + kLineBytes <= limit_ &&
      ReadRecordHeader(position_.lsn, wrapped, &record_)) {
    return Take(begin, /*pad_damaged=*/!has_pad);
  }
  return Step::kBadHeader;
}

RecordCursor::Step RecordCursor::Take(RingOffset begin, bool pad_damaged) {
  record_begin_ = begin;
  pad_damaged_ = pad_damaged;
  position_.lsn = position_.lsn + 1;
  position_.offset = record_.offset + RecordBytes(record_.header.payload_bytes);
  position_.chain = ExtendChain(position_.chain, record_.header.header_crc);
  const bool check = payloads_ == Payloads::kCheck && !record_.cleaned;
  if (check && !PayloadIsValid(record_.seed, record_.header, record_.payload)) {
    return Step::kBadPayload;
  }
  return Step::kRecord;
}

bool RecordCursor::ReadAnyHeader(RingOffset offset, RecordView* record) const {
  if (offset + kLineBytes > limit_) return false;
  // The claim is only a candidate: the checksum is seeded with it.
  uint64_t claimed_lsn = 0;
  std::memcpy(&claimed_lsn, ring_.At(offset), sizeof(claimed_lsn));
  return ReadRecordHeader(Lsn(claimed_lsn), offset, record);
}

bool RecordCursor::ReadRecordHeader(Lsn lsn, RingOffset offset,
                                    RecordView* record) const {
  if (!ReadHeader(lsn, offset, record) || IsPad(record->header)) return false;
  const uint64_t bytes = RecordBytes(record->header.payload_bytes);
  // A valid checksum on an impossible length is a writer's bug or an attack;
  // either way nothing may be read past the ring or the limit (U1, U3).
  if (bytes > ring_.UntilEnd(offset) || offset + bytes > limit_) return false;
  if (!record->aborted()) {
    record->payload = {ring_.At(offset) + kRecordHeaderBytes,
                       record->header.payload_bytes};
  }
  return true;
}

bool RecordCursor::ReadHeader(Lsn lsn, RingOffset offset,
                              RecordView* record) const {
  *record = {};
  RecordHeader& header = record->header;
  std::memcpy(&header, ring_.At(offset), sizeof(header));
  // Cheap refusals first: most lines behind the end fail here.
  if (header.magic != kRecordMagic || header.lsn != lsn.value) return false;
  const EpochEntry* owner = table_.Owner(lsn);
  if (owner == nullptr || header.epoch != owner->epoch.value) return false;
  record->offset = offset;
  record->seed = table_.KeyOf(owner).Seed(lsn, offset);
  if (!HeaderIsValid(record->seed, header)) return false;
  record->cleaned = header.cleaned == CleanedWord(record->seed);
  return true;
}

}  // namespace alpheus
