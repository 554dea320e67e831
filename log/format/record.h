// SPDX-License-Identifier: Apache-2.0
// record: the bytes of one record in the ring, and the seeds that tie them to
// their log, epoch, LSN and place.
//
// Idea: Arcadia's integrity primitive (listing 1) hardened: header and payload
// each have a seeded checksum. So neither order nor atomicity of the writes
// matters, and bytes that were valid in one place are valid in no other. All
// bytes may reach the medium in any order; the record is there when both
// checksums hold.
//
// Invariants:
//   REC1. No field of a header, least of all payload_bytes, is used before its
//         checksum holds (P-L1).
//   REC2. A record of another log, epoch, LSN or ring offset does not validate;
//         neither does memory of all zeros or all ones (P-L2, P-L3).
//   REC3. One flipped bit never turns a valid record into a cleaned one (P-L8).
//   REC4. A record never crosses the end of the ring; a PAD fills the gap and
//         carries the LSN of the record after it (P-L5).
// Persistence: 8-byte words may be torn apart by a power cut; the last word
// written, `publish`, carries both checksums.
// Thread safety: values and pure functions.
// References: Arcadia §3, §4.3; docs/formats/log.md#record.
#ifndef ALPHEUS_LOG_FORMAT_RECORD_H_
#define ALPHEUS_LOG_FORMAT_RECORD_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/base/mix.h"
#include "log/format/checksum.h"

namespace alpheus {

// On media, never renumber. 0 is no type: zeroed memory is no record.
enum class RecordType : uint8_t {
  kData = 1,
  kPad = 2,      // fills the end of the ring, takes no LSN
  kAborted = 3,  // a reservation that was given up; has an LSN, no content
};

inline constexpr uint16_t kRecordMagic = 0xa1f5;

// Little-endian on media, as on every platform that has persistent memory.
struct RecordHeader {
  uint64_t lsn;            // 0..8    in a PAD: LSN of the record after it
  uint64_t epoch;          // 8..16   incarnation of the writer
  uint64_t durable_lsn;    // 16..24  known durable when this was written; proof
                           //         that records up to it were acknowledged
  uint32_t payload_bytes;  // 24..28  in PAD and ABORTED: bytes to skip
  uint16_t magic;          // 28..30  kRecordMagic
  uint8_t type;            // 30..31  RecordType
  uint8_t reserved;        // 31..32  0
  uint32_t payload_crc;    // 32..36  low half of the publish word
  uint32_t header_crc;     // 36..40  over bytes 0..36; high half of it
  uint64_t cleaned;        // 40..48  CleanedWord() once cleaned, else 0;
                           //         outside header_crc, checks itself
};

inline constexpr uint64_t kRecordHeaderBytes = 48;
static_assert(std::is_trivially_copyable_v<RecordHeader>);
static_assert(sizeof(RecordHeader) == kRecordHeaderBytes);
static_assert(offsetof(RecordHeader, lsn) == 0);
static_assert(offsetof(RecordHeader, epoch) == 8);
static_assert(offsetof(RecordHeader, durable_lsn) == 16);
static_assert(offsetof(RecordHeader, payload_bytes) == 24);
static_assert(offsetof(RecordHeader, magic) == 28);
static_assert(offsetof(RecordHeader, type) == 30);
static_assert(offsetof(RecordHeader, reserved) == 31);
static_assert(offsetof(RecordHeader, payload_crc) == 32);
static_assert(offsetof(RecordHeader, header_crc) == 36);
static_assert(offsetof(RecordHeader, cleaned) == 40);

// Returns the lines that a record with this payload takes in the ring, header
// included.
constexpr uint64_t RecordLines(uint64_t payload_bytes) {
  return (kRecordHeaderBytes + payload_bytes + kLineBytes - 1) / kLineBytes;
}
constexpr uint64_t RecordBytes(uint64_t payload_bytes) {
  return RecordLines(payload_bytes) * kLineBytes;
}

// Secret of one epoch of one log, from which all seeds are derived. The nonce
// is random and never shown to clients, so that no payload chosen before the
// epoch opened can imitate one of its headers (P-H14).
class EpochKey {
 public:
  EpochKey() = default;
  EpochKey(Uuid log_id, Epoch epoch, uint64_t nonce);

  // Returns 64 bits for one place of one record: the low half seeds the
  // header's checksum, the high half the payload's. The odd factor spreads LSNs
  // over the bits that offsets leave free.
  uint64_t Seed(Lsn lsn, RingOffset offset) const {
    return Mix(key_ ^ lsn.value * 0xd6e8feb86659fd93u ^ offset.value);
  }

 private:
  uint64_t key_ = 0;
};

// Start value of records' CRCs. The seed is mixed in at the end, so that bytes
// can be summed before their place is known.
inline constexpr uint32_t kCrcStart = 0xffffffff;

// Returns the checksum of a payload from the CRC of its bytes.
inline uint32_t PayloadChecksum(uint64_t seed, uint32_t crc) {
  return crc ^ static_cast<uint32_t>(seed >> 32);
}

// Returns the value of RecordHeader::cleaned that means "cleaned" at this
// place; never 0.
inline uint64_t CleanedWord(uint64_t seed) {
  constexpr uint64_t kCleanedTag = 0x636c65616e656421u;  // "cleaned!"
  return Mix(seed, kCleanedTag) | 1;
}

// Returns bytes 24..32 of the header as one word.
inline uint64_t LengthAndTypeWord(const RecordHeader& header) {
  return uint64_t{header.payload_bytes} | uint64_t{header.magic} << 32 |
         uint64_t{header.type} << 48 | uint64_t{header.reserved} << 56;
}

// Returns the checksum of bytes 0..36 of the header.
inline uint32_t HeaderChecksum(uint64_t seed, const RecordHeader& header) {
  uint64_t crc = Crc32cWord(kCrcStart, header.lsn);
  crc = Crc32cWord(crc, header.epoch);
  crc = Crc32cWord(crc, header.durable_lsn);
  crc = Crc32cWord(crc, LengthAndTypeWord(header));
  return static_cast<uint32_t>(seed) ^ Crc32cHalfWord(crc, header.payload_crc);
}

// Returns both checksums as the one word that publishes the record.
inline uint64_t PublishWord(const RecordHeader& header) {
  return uint64_t{header.payload_crc} | uint64_t{header.header_crc} << 32;
}

// Header as it lies in memory, in words: loops over many headers keep it in
// registers.
struct HeaderWords {
  uint64_t word[kRecordHeaderBytes / sizeof(uint64_t)] = {};

  uint64_t lsn() const { return word[0]; }
  uint64_t epoch() const { return word[1]; }
  uint64_t durable_lsn() const { return word[2]; }
  uint32_t payload_bytes() const { return static_cast<uint32_t>(word[3]); }
  uint16_t magic() const { return static_cast<uint16_t>(word[3] >> 32); }
  uint8_t type() const { return static_cast<uint8_t>(word[3] >> 48); }
  uint32_t payload_crc() const { return static_cast<uint32_t>(word[4]); }
  uint32_t header_crc() const { return static_cast<uint32_t>(word[4] >> 32); }
  uint64_t cleaned() const { return word[5]; }
};
static_assert(offsetof(RecordHeader, payload_bytes) == 3 * sizeof(uint64_t));

inline HeaderWords LoadHeader(const std::byte* from) {
  const auto load = [from](size_t i) {
    uint64_t word = 0;
    std::memcpy(&word, from + i * sizeof(word), sizeof(word));
    return word;
  };
  // Word by word, so that each is in a register.
  return {{load(0), load(1), load(2), load(3), load(4), load(5)}};
}

// Returns true if magic, type and checksum hold (REC1, REC2). Does not check
// the payload.
inline bool HeaderIsValid(uint64_t seed, const HeaderWords& words) {
  uint64_t crc = kCrcStart;
  for (int i = 0; i < 4; ++i) crc = Crc32cWord(crc, words.word[i]);
  const uint32_t sum =
      static_cast<uint32_t>(seed) ^ Crc32cHalfWord(crc, words.payload_crc());
  return words.magic() == kRecordMagic &&
         words.type() >= static_cast<uint8_t>(RecordType::kData) &&
         words.type() <= static_cast<uint8_t>(RecordType::kAborted) &&
         words.lsn() != 0 && words.header_crc() == sum;
}

// Returns true if the payload's checksum holds; always for PAD and ABORTED,
// which have no content. Requires: HeaderIsValid, payload.size() ==
// payload_bytes().
inline bool PayloadIsValid(uint64_t seed, const HeaderWords& header,
                           std::span<const std::byte> payload) {
  if (header.type() != static_cast<uint8_t>(RecordType::kData)) return true;
  return header.payload_crc() ==
         PayloadChecksum(seed, Crc32c(kCrcStart, payload));
}

// Returns chain(n) of the log (P-H8) from chain(n-1) and the checksum of the
// header of n. PADs are left out.
inline uint64_t ExtendChain(uint64_t chain, uint32_t header_crc) {
  return Mix(chain ^ header_crc);
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_RECORD_H_
