// SPDX-License-Identifier: Apache-2.0
// record_cursor: walks the records of a ring in LSN order, trusting nothing.
//
// Idea: one step decides what lies at (lsn, offset): a record whose header
// holds under the epoch that owns the LSN, possibly behind a PAD, or nothing
// that can be read. What "nothing" means (end, torn, corrupt) is the scan's
// judgement (scan.h); the cursor only reads. It is the one place that turns
// ring bytes into records: recovery, iteration, cleanup and readers use it.
//
// Invariants:
//   RC1. Never reads outside the ring, whatever the bytes are (P-L1).
//   RC2. scan(image) = scan(image with PADs removed or damaged) (P-L5): since
//        no record crosses the end of the ring, an unreadable place whose LSN
//        is found at the ring's start was a damaged PAD.
//   RC3. Ends at `limit`, one capacity after the head.
// Thread safety: one thread; the ring may be written meanwhile only by cleanup.
// References: protocol P-A1, P-A4.3; docs/log_format.md#scan.
#ifndef ALPHEUS_LOG_CORE_RECORD_CURSOR_H_
#define ALPHEUS_LOG_CORE_RECORD_CURSOR_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus {

// A place in the log: the next LSN, where it goes, and the chain before it.
struct LogPosition {
  Lsn lsn{1};
  RingOffset offset;
  uint64_t chain = 0;

  bool operator==(const LogPosition&) const = default;
};

// A record whose header holds.
struct RecordView {
  HeaderWords header;  // a copy: safe against bytes that change
  RingOffset offset;   // of the header
  uint64_t bytes = 0;  // in the ring, header included
  uint64_t seed = 0;   // of its checksums
  bool cleaned = false;
  std::span<const std::byte> payload;  // in the ring; empty when aborted

  Lsn lsn() const { return Lsn(header.lsn()); }
  Epoch epoch() const { return Epoch(header.epoch()); }
  bool aborted() const {
    return header.type() == static_cast<uint8_t>(RecordType::kAborted);
  }
  bool is_pad() const {
    return header.type() == static_cast<uint8_t>(RecordType::kPad);
  }
};

class RecordCursor {
 public:
  static constexpr RingOffset kNoOffset{std::numeric_limits<uint64_t>::max()};

  enum class Step {
    kRecord,      // record() holds, payload included (if checked)
    kBadPayload,  // the header of record() holds, its payload doesn't
    kBadHeader,   // nothing readable at position()
  };
  enum class Payloads {
    kCheck,
    kSkip,
    kTrust,  // checked before: neither checks them nor carries the chain along
  };

  // Walks from `start` to at most `limit` (start of the log + capacity).
  // The table must outlive the cursor.
  RecordCursor(Ring ring, const EpochTable& table, LogPosition start,
               RingOffset limit, Payloads payloads = Payloads::kCheck)
      : ring_(ring),
        table_(table),
        position_(start),
        place_(ring.Place(start.offset)),
        limit_(limit),
        payloads_(payloads) {}

  // Reads what is at position(). After kRecord and kBadPayload the position is
  // behind it; after kBadHeader it has not moved.
  Step Next();

  // Next() for as long as records lie there with no PAD before them and in the
  // epoch of the last one, which is nearly always, in one tight loop. Calls
  // visit(position before it, record) with each and reads no further until that
  // returns; a visit that returns false ends the walk behind its record. Ends
  // in front of whatever is something else, which Next() then judges, or a bad
  // payload, and in front of the first that begins at `until` or behind, so
  // that a caller may walk in slices. record() is not changed.
  // Requires: `Mode` is the cursor's own.
  template <Payloads Mode = Payloads::kCheck, class Visit>
  void WalkPlain(const Visit& visit, RingOffset until = kNoOffset);

  // Goes on at another place, after a hole. The chain is broken there.
  void Resume(LogPosition position) {
    position_ = position;
    place_ = ring_.Place(position.offset);
  }

  // Next LSN, its offset (of its PAD, if it has one), chain before it.
  const LogPosition& position() const { return position_; }
  const RecordView& record() const { return record_; }

  // Offset of the PAD in front of record(); equal to the record's own offset
  // if it has none.
  RingOffset record_begin() const { return record_begin_; }
  // True if that PAD is there but can't be read.
  bool pad_damaged() const { return pad_damaged_; }

  // The header at `offset` if it holds for some LSN of its own claim: used to
  // look for records behind a hole. `line` is a copy of the line there, or the
  // line itself. Returns false without reading further if not, or if it is a
  // PAD.
  bool ReadAnyHeader(RingOffset offset, const std::byte* line,
                     RecordView* record) const;

 private:
  // An epoch, the LSNs that it owns, and its key.
  struct Owner {
    Lsn first{1};
    Lsn end{1};  // nothing yet
    Epoch epoch;
    EpochKey key;

    bool Owns(Lsn lsn) const { return first <= lsn && lsn < end; }
  };

  // False if no epoch owns `lsn`.
  bool FindOwner(Lsn lsn, Owner* owner) const;
  // `line` is what lies at `offset`, `place` in the ring. The view is valid
  // only if true is returned.
  [[gnu::always_inline]] static bool ReadHeader(const Owner& owner, Lsn lsn,
                                                RingOffset offset,
                                                const std::byte* line,
                                                RecordView* record);
  [[gnu::always_inline]] bool ReadRecordHeader(const Owner& owner, Lsn lsn,
                                               RingOffset offset,
                                               const std::byte* line,
                                               uint64_t place,
                                               RecordView* record) const;
  Step NextBehindPad();
  Step Take(RingOffset begin, bool pad_damaged);

  Ring ring_;
  const EpochTable& table_;
  LogPosition position_;
  uint64_t place_;  // of position_.offset
  RingOffset limit_;
  Payloads payloads_;
  Owner owner_;  // of the last LSN
  RecordView record_;
  RingOffset record_begin_;
  bool pad_damaged_ = false;
};

inline bool RecordCursor::ReadHeader(const Owner& owner, Lsn lsn,
                                     RingOffset offset, const std::byte* line,
                                     RecordView* record) {
  // Where payloads are skipped the processor does not see the pattern itself.
  constexpr uintptr_t kPrefetchBytes = 2048;
  __builtin_prefetch(reinterpret_cast<const void*>(
      reinterpret_cast<uintptr_t>(line) + kPrefetchBytes));
  // A copy, which the checks and the caller see alike.
  const HeaderWords words = LoadHeader(line);
  if (words.lsn() != lsn.value || words.epoch() != owner.epoch.value) {
    return false;
  }
  const uint64_t seed = owner.key.Seed(lsn, offset);
  if (!HeaderIsValid(seed, words)) return false;
  record->header = words;
  record->offset = offset;
  record->seed = seed;
  record->bytes = RecordBytes(words.payload_bytes());
  record->cleaned =
      words.cleaned() != 0 && words.cleaned() == CleanedWord(seed);
  return true;
}

inline bool RecordCursor::ReadRecordHeader(const Owner& owner, Lsn lsn,
                                           RingOffset offset,
                                           const std::byte* line,
                                           uint64_t place,
                                           RecordView* record) const {
  if (!ReadHeader(owner, lsn, offset, line, record) || record->is_pad()) {
    return false;
  }
  const uint64_t bytes = record->bytes;
  // A valid checksum on an impossible length is a writer's bug or an attack;
  // either way nothing may be read past the ring or the limit (RC1, RC3).
  const bool fits =
      bytes <= ring_.capacity() - place && offset + bytes <= limit_;
  if (!fits) return false;
  record->payload = {ring_.data() + place + kRecordHeaderBytes,
                     record->aborted() ? 0 : record->header.payload_bytes()};
  return true;
}

// In locals, which stay in registers.
template <RecordCursor::Payloads Mode, class Visit>
void RecordCursor::WalkPlain(const Visit& visit, RingOffset until) {
  const Owner owner = owner_;
  const RingOffset stop = std::min(limit_, until);
  LogPosition at = position_;
  uint64_t place = place_;
  RecordView record;
  bool go_on = true;
  while (go_on && at.offset + kLineBytes <= stop && owner.Owns(at.lsn) &&
         ReadRecordHeader(owner, at.lsn, at.offset, ring_.data() + place, place,
                          &record)) {
    if (Mode == Payloads::kCheck && !record.cleaned &&
        !PayloadIsValid(record.seed, record.header, record.payload)) {
      break;
    }
    const LogPosition before = at;
    at.lsn = at.lsn + 1;
    at.offset = at.offset + record.bytes;
    if (Mode != Payloads::kTrust) {
      at.chain = ExtendChain(at.chain, record.header.header_crc());
    }
    place += record.bytes;
    if (place == ring_.capacity()) place = 0;
    if constexpr (std::is_void_v<decltype(visit(before, record))>) {
      visit(before, record);
    } else {
      go_on = visit(before, record);
    }
  }
  position_ = at;
  place_ = place;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_RECORD_CURSOR_H_
