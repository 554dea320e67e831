// SPDX-License-Identifier: Apache-2.0
// watermark: the line that proves an LSN up to which records were persisted.
//
// Idea: a record that can't be read is corrupt if something proves that it was
// persisted here, and else torn. The watermark is such a proof: it names what
// was *already fenced* when it was written. So a watermark and the batch under
// the same fence never contradict each other at a power cut (P-H9, P-H10). Two
// lines on pages of their own are written in turn; a power cut tears at most
// one. A line also has the place of the record that it names, so that a scan
// may begin there (local_opening.h). The scan reads that record, too. Without
// that, one fault could destroy the last proven record and the unproven ones
// after it, and the scan would see only an end (P-L14).
//
// Invariants:
//   WMK1. A valid watermark (e, n) implies: every record up to n that epoch e
//         owns was persisted here, before the watermark was stored. Its place,
//         if it has one, is where record n starts, with the chain before it.
//   WMK2. The line that holds is never overwritten before the other one is
//         persisted; both lines bad is damage, not a power cut.
//   WMK3. Watermarks of other epochs than the log epoch mean nothing.
// Thread safety: values and pure functions.
// References: protocol P-A3.5; docs/formats/log.md#watermark.
#ifndef ALPHEUS_LOG_FORMAT_WATERMARK_H_
#define ALPHEUS_LOG_FORMAT_WATERMARK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/format/checksum.h"

namespace alpheus {

inline constexpr uint32_t kWatermarkMagic = 0x4b52414d;  // "MARK"

// Where a record starts, its PAD included. Zeros if that is not known: of all
// records only LSN 1 starts at offset 0, and these are its place.
struct WatermarkPlace {
  RingOffset offset;
  uint64_t chain = 0;  // before the record

  bool operator==(const WatermarkPlace&) const = default;
};

struct Watermark {
  Epoch epoch;
  Lsn lsn;
  WatermarkPlace place = {};  // of record `lsn`

  bool operator==(const Watermark&) const = default;
};

struct alignas(kLineBytes) WatermarkFormat {
  uint64_t epoch;        // 0..8
  uint64_t lsn;          // 8..16
  uint64_t offset;       // 16..24   place; 0 if none is known, as the chain
  uint64_t chain;        // 24..32
  uint64_t reserved[3];  // 32..56   0
  uint32_t magic;        // 56..60
  uint32_t crc;          // 60..64   over bytes 0..60, seeded with log and line
};
static_assert(sizeof(WatermarkFormat) == kLineBytes);
static_assert(offsetof(WatermarkFormat, epoch) == 0);
static_assert(offsetof(WatermarkFormat, lsn) == 8);
static_assert(offsetof(WatermarkFormat, offset) == 16);
static_assert(offsetof(WatermarkFormat, chain) == 24);
static_assert(offsetof(WatermarkFormat, magic) == 56);
static_assert(offsetof(WatermarkFormat, crc) == 60);

WatermarkFormat EncodeWatermark(Uuid log_id, int line, Watermark watermark);

// Encodes watermarks of one line and epoch, as words. It is used with every
// batch, so the checksum starts from the part that all have in common.
class WatermarkEncoder {
 public:
  WatermarkEncoder(Uuid log_id, int line, Epoch epoch);

  LineWords Encode(Lsn lsn, const WatermarkPlace& place) const {
    uint64_t crc = Crc32cWord(crc_of_epoch_, lsn.value);
    crc = Crc32cWord(crc, place.offset.value);
    crc = Crc32cWord(crc, place.chain);
    for (int i = 0; i < 3; ++i) crc = Crc32cWord(crc, 0);
    const uint32_t sum = Crc32cHalfWord(crc, kWatermarkMagic);
    return {{epoch_, lsn.value, place.offset.value, place.chain, 0, 0, 0,
             uint64_t{kWatermarkMagic} | uint64_t{sum} << 32}};
  }

 private:
  uint64_t epoch_;
  uint32_t crc_of_epoch_;
};

// Returns the watermark at `address`, or nothing if the line is torn or
// damaged.
std::optional<Watermark> DecodeWatermark(Uuid log_id, int line,
                                         const std::byte* address);

// Both lines as found.
struct WatermarkPair {
  std::array<std::optional<Watermark>, 2> lines;

  bool both_bad() const { return !lines[0] && !lines[1]; }
  // Returns the line of `epoch` with the highest LSN; nullptr if there is none.
  const Watermark* Latest(Epoch epoch) const;
  // Returns the highest LSN that a line of `epoch` proves persisted; Lsn(0) if
  // none does.
  Lsn Proven(Epoch epoch) const;
  // Returns the line to write next: a bad one, else one of another epoch, else
  // the older one (WMK2).
  int NextLine(Epoch epoch) const;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_WATERMARK_H_
