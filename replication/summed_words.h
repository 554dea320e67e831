// SPDX-License-Identifier: Apache-2.0
// summed_words: the bytes of what the two ends of a session say to each other:
// some words, of which the first says what it is, and a sum of them.
//
// Idea: an ack whose bits were turned on its way might count a head that no
// superline has, and a head might cut a log off where no record begins. So no
// word counts before the sum holds. Links that check what they carry never turn
// one; sums of some ten bytes cost nothing there.
//
// Invariants:
//   SW1. What decodes is what was encoded, of this very kind.
// Thread safety: pure functions.
// References: docs/replication.md, "Messages of a session".
#ifndef ALPHEUS_REPLICATION_SUMMED_WORDS_H_
#define ALPHEUS_REPLICATION_SUMMED_WORDS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "log/format/checksum.h"

namespace alpheus {

static_assert(std::endian::native == std::endian::little);

// Bytes of so many words with their sum, kind included.
inline constexpr size_t SummedBytes(size_t words) {
  return (words + 1) * sizeof(uint64_t);
}

// Its upper half is zeros. The seed is no sum of nothing.
inline uint64_t SumOfWords(std::span<const std::byte> words) {
  constexpr uint32_t kSeed = 0x77505541;  // "AUPw" in memory
  return Crc32c(kSeed, words);
}

template <size_t Words>
void EncodeWords(const std::array<uint64_t, Words>& words,
                 std::span<std::byte, SummedBytes(Words)> into) {
  std::memcpy(into.data(), words.data(), sizeof(words));
  const uint64_t sum = SumOfWords(into.first(sizeof(words)));
  std::memcpy(into.data() + sizeof(words), &sum, sizeof(sum));
}

// Whether these are some words and their sum, of whatever kind: if not they
// were changed on their way.
inline bool AreSummed(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  if (bytes.size() < sizeof(sum)) return false;
  std::memcpy(&sum, bytes.last(sizeof(sum)).data(), sizeof(sum));
  return sum == SumOfWords(bytes.first(bytes.size() - sizeof(sum)));
}

// Nothing if they are none of this kind, or their sum does not hold (SW1).
template <size_t Words>
std::optional<std::array<uint64_t, Words>> DecodeWords(
    uint64_t kind, std::span<const std::byte> bytes) {
  std::array<uint64_t, Words> words;
  if (bytes.size() != SummedBytes(Words) || !AreSummed(bytes)) {
    return std::nullopt;
  }
  std::memcpy(words.data(), bytes.data(), sizeof(words));
  if (words[0] != kind) return std::nullopt;
  return words;
}

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_SUMMED_WORDS_H_
