// SPDX-License-Identifier: Apache-2.0
// summed_words: the encoding of a session's small messages: some words, of
// which the first is the kind, and a sum of them.
//
// Idea: an ack with flipped bits might count a head that no superline has, and
// such a head might cut off a log where no record begins. So no word counts
// before the sum holds. Links that check what they carry never flip one; sums
// of some ten bytes cost nothing there.
//
// Invariants:
//   SW1. Decoded words are those that were encoded, of this very kind.
// Thread safety: pure functions.
// References: docs/design/replication.md, "What is summed".
#ifndef ALPHEUS_REPLICATION_WIRE_SUMMED_WORDS_H_
#define ALPHEUS_REPLICATION_WIRE_SUMMED_WORDS_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "log/format/checksum.h"

namespace alpheus::replication {

static_assert(std::endian::native == std::endian::little);

// Returns the bytes of `words` words, the kind included, with their sum.
inline constexpr size_t SummedBytes(size_t words) {
  return (words + 1) * sizeof(uint64_t);
}

// Returns the sum; its upper half is zeros. The seed keeps a sum of no words
// from being 0.
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

// Returns true if the bytes are words of any kind with their sum. If not, they
// were changed on their way.
inline bool AreSummed(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  if (bytes.size() < sizeof(sum)) return false;
  std::memcpy(&sum, bytes.last(sizeof(sum)).data(), sizeof(sum));
  return sum == SumOfWords(bytes.first(bytes.size() - sizeof(sum)));
}

// Returns nothing if the bytes are not of this kind, or their sum does not hold
// (SW1).
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

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_WIRE_SUMMED_WORDS_H_
