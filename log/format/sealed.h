// SPDX-License-Identifier: Apache-2.0
// sealed: the integrity primitive: bytes that prove whether they are whole.
//
// Idea: Arcadia's listing 1: a header with the size and two checksums, of the
// header and of the data. So one persist of everything, in any order, is
// enough: torn or damaged bytes are detected, never returned. Both checksums
// are seeded with the identity of the place, so that sealed bytes of another
// place or owner don't validate. Records are the specialised form (record.h).
//
// Invariants:
//   SEA1. The size is not used before the header's checksum holds.
// Persistence: a crash during a write leaves bytes that don't validate, or the
// whole; the old content is gone. To replace content atomically use
// atomic_cell.h.
// Thread safety: pure functions.
// References: Arcadia §3 figure 1, listing 1; docs/formats/log.md#sealed.
#ifndef ALPHEUS_LOG_FORMAT_SEALED_H_
#define ALPHEUS_LOG_FORMAT_SEALED_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace alpheus {

inline constexpr uint64_t kSealedMagic = 0x4445'4c41'4553'5041u;  // "APSEALED"

struct SealedHeader {
  uint64_t magic;       // 0..8
  uint64_t data_bytes;  // 8..16
  uint32_t data_crc;    // 16..20
  uint32_t header_crc;  // 20..24  over bytes 0..20
};
inline constexpr size_t kSealedHeaderBytes = 24;
static_assert(sizeof(SealedHeader) == kSealedHeaderBytes);
static_assert(offsetof(SealedHeader, magic) == 0);
static_assert(offsetof(SealedHeader, data_bytes) == 8);
static_assert(offsetof(SealedHeader, data_crc) == 16);
static_assert(offsetof(SealedHeader, header_crc) == 20);

// Returns the header for `data`, to be stored in front of it.
SealedHeader Seal(uint64_t identity, std::span<const std::byte> data);

// Returns a copy of the data sealed at the start of `place`, or nothing if it
// is torn, damaged, or of another identity. Reads nothing outside `place`.
std::optional<std::vector<std::byte>> Unseal(uint64_t identity,
                                             std::span<const std::byte> place);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_SEALED_H_
