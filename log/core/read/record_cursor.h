// SPDX-License-Identifier: Apache-2.0
// record_cursor: walks the records of a ring in LSN order, trusting nothing.
//
// Idea: one step decides what lies at (lsn, offset): a record whose header
// holds under the epoch that owns the LSN, possibly after a PAD; or nothing
// that can be read. scan.h judges what "nothing" means (end, torn, corrupt);
// the cursor only reads. It is the one place that turns ring bytes into
// records: recovery, iteration, cleanup and readers use it.
//
// Invariants:
//   RC1. Never reads outside the ring, whatever the bytes are (P-L1).
//   RC2. scan(image) = scan(image with PADs removed or damaged) (P-L5). No
//        record crosses the end of the ring. So an unreadable place whose LSN
//        is found at the ring's start was a damaged PAD.
//   RC3. Ends at `limit`, one capacity after the head.
// Thread safety: one thread; only cleanup may write the ring meanwhile.
// References: protocol P-A1, P-A4.3; docs/formats/log.md#scan.
#ifndef ALPHEUS_LOG_CORE_READ_RECORD_CURSOR_H_
#define ALPHEUS_LOG_CORE_READ_RECORD_CURSOR_H_

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
  RingOffset offset;   // offset of the header
  uint64_t bytes = 0;  // size in the ring, header included
  uint64_t seed = 0;   // seed of its checksums
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
    kTrust,  // checked before: neither checks them nor extends the chain
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

  // Reads the place at position(). After kRecord and kBadPayload the position
  // is past the record; after kBadHeader it has not moved.
  Step Next();

  // Does Next() in one tight loop while records have no PAD before them and are
  // of the same epoch as the last one, which is nearly always. Calls
  // visit(position before it, record) for each and reads no further until that
  // returns. Ends
  // * after a record for which `visit` returned false;
  // * before anything else than such a record, which Next() then judges;
  // * before a bad payload;
  // * before the first record at or after `until`, so that a caller may walk in
  //   slices.
  // Does not change record(). Requires: `Mode` is the cursor's own.
  template <Payloads Mode = Payloads::kCheck, class Visit>
  void WalkPlain(const Visit& visit, RingOffset until = kNoOffset);

  // Continues at another place, after a hole. The chain is broken there.
  void Resume(LogPosition position) {
    position_ = position;
    place_ = ring_.Place(position.offset);
  }

  // Returns the next LSN, its offset (of its PAD, if it has one), and the chain
  // before it.
  const LogPosition& position() const { return position_; }
  const RecordView& record() const { return record_; }

  // Returns the offset of the PAD in front of record(), or the record's own
  // offset if it has none.
  RingOffset record_begin() const { return record_begin_; }
  // Returns true if that PAD exists but can't be read.
  bool pad_damaged() const { return pad_damaged_; }

  // Reads the header at `offset` if it holds for the LSN that it names, to
  // find records after a hole. `line` is a copy of the line there, or the line
  // itself. Returns false, without reading further, if it does not hold or is a
  // PAD.
  bool ReadAnyHeader(RingOffset offset, const std::byte* line,
                     RecordView* record) const;

 private:
  // An epoch, the LSNs that it owns, and its key.
  struct Owner {
    Lsn first{1};
    Lsn end{1};  // none yet
    Epoch epoch;
    EpochKey key;

    bool Owns(Lsn lsn) const { return first <= lsn && lsn < end; }
  };

  // Finds the epoch that owns `lsn`. Returns false if there is none.
  bool FindOwner(Lsn lsn, Owner* owner) const;
  // Reads the header in `line`, the line at `offset` (`place` in the ring). The
  // view is valid only if true is returned.
  [[gnu::always_inline]] static bool ReadHeader(const Owner& owner, Lsn lsn,
                                                RingOffset offset,
                                                const std::byte* line,
                                                RecordView* record);
  [[gnu::always_inline]] bool ReadRecordHeader(const Owner& owner, Lsn lsn,
                                               RingOffset offset,
                                               const std::byte* line,
                                               uint64_t place,
                                               RecordView* record) const;
  Step NextAfterPad();
  Step Pass(RingOffset begin, bool pad_damaged);

  Ring ring_;
  const EpochTable& table_;
  LogPosition position_;
  uint64_t place_;  // place of position_.offset
  RingOffset limit_;
  Payloads payloads_;
  Owner owner_;  // owner of the last LSN
  RecordView record_;
  RingOffset record_begin_;
  bool pad_damaged_ = false;
};

inline bool RecordCursor::ReadHeader(const Owner& owner, Lsn lsn,
                                     RingOffset offset, const std::byte* line,
                                     RecordView* record) {
  // Where payloads are skipped the processor does not detect the pattern.
  constexpr uintptr_t kPrefetchBytes = 2048;
  __builtin_prefetch(reinterpret_cast<const void*>(
      reinterpret_cast<uintptr_t>(line) + kPrefetchBytes));
  // A copy: checks and caller see the same bytes.
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
  // A valid checksum on an impossible length is a writer's bug or an attack.
  // Never read past the ring or the limit (RC1, RC3).
  const bool fits =
      bytes <= ring_.capacity() - place && offset + bytes <= limit_;
  if (!fits) return false;
  record->payload = {ring_.data() + place + kRecordHeaderBytes,
                     record->aborted() ? 0 : record->header.payload_bytes()};
  return true;
}

// Works on local variables, which stay in registers.
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

#endif  // ALPHEUS_LOG_CORE_READ_RECORD_CURSOR_H_
