// SPDX-License-Identifier: Apache-2.0
// checksum: seeded CRC32C, the integrity check of everything on media.
//
// The seed replaces the usual initial value, so that equal bytes in another
// log, epoch, place or copy have another checksum (P-L2, P-L3). Runs of bytes
// chain: Crc32c(Crc32c(s, a), b) == Crc32c(s, a + b).
//
// Thread safety: pure functions.
// References: docs/formats/log.md#checksums; ISA-L crc32_iscsi.
#ifndef ALPHEUS_LOG_FORMAT_CHECKSUM_H_
#define ALPHEUS_LOG_FORMAT_CHECKSUM_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace alpheus {

namespace internal {

// Computes by ISA-L, which is fastest from some hundred bytes on.
uint32_t Crc32cLong(uint32_t crc, std::span<const std::byte> bytes);

}  // namespace internal

// The words of a header are summed as they lie in memory.
static_assert(std::endian::native == std::endian::little);

// Returns the CRC32C of one word of memory. Argument and result are in the low
// half, as in the processor: otherwise each step would truncate.
inline uint64_t Crc32cWord(uint64_t crc, uint64_t word) {
#if defined(__SSE4_2__)
  return _mm_crc32_u64(crc, word);
#else
  return internal::Crc32cLong(static_cast<uint32_t>(crc),
                              std::as_bytes(std::span(&word, 1)));
#endif
}
inline uint32_t Crc32cHalfWord(uint64_t crc, uint32_t half) {
#if defined(__SSE4_2__)
  return _mm_crc32_u32(static_cast<uint32_t>(crc), half);
#else
  return internal::Crc32cLong(static_cast<uint32_t>(crc),
                              std::as_bytes(std::span(&half, 1)));
#endif
}

// Returns the CRC32C (Castagnoli, reflected) of `bytes` starting from `seed`,
// without the final inversion.
inline uint32_t Crc32c(uint32_t seed, std::span<const std::byte> bytes) {
  constexpr size_t kLongBytes = 192;  // from this size on the call pays
  if (bytes.size() >= kLongBytes) return internal::Crc32cLong(seed, bytes);
  uint64_t crc = seed;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  const auto next_word = [&at, &left] {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    at += sizeof(word);
    left -= sizeof(word);
    return word;
  };
  while (left >= 4 * sizeof(uint64_t)) {
    crc = Crc32cWord(crc, next_word());
    crc = Crc32cWord(crc, next_word());
    crc = Crc32cWord(crc, next_word());
    crc = Crc32cWord(crc, next_word());
  }
  while (left >= sizeof(uint64_t)) crc = Crc32cWord(crc, next_word());
#if defined(__SSE4_2__)
  if (left & 4) {
    uint32_t half = 0;
    std::memcpy(&half, at, sizeof(half));
    crc = Crc32cHalfWord(crc, half);
    at += sizeof(half);
  }
  auto low = static_cast<uint32_t>(crc);
  for (left %= 4; left > 0; --left) {
    low = _mm_crc32_u8(low, std::to_integer<uint8_t>(*at++));
  }
  return low;
#else
  const auto low = static_cast<uint32_t>(crc);
  return left == 0 ? low : internal::Crc32cLong(low, {at, left});
#endif
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_CHECKSUM_H_
