// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/ones.h"

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>
#include <numeric>

namespace alpheus::bench {
namespace {

using Counter = uint64_t (*)(const std::byte* from, uint64_t bytes);

uint64_t Load8(const std::byte* from, uint64_t bytes) {
  uint64_t word = 0;
  if (bytes == 0) return word;  // `from` may be null
  std::memcpy(&word, from, bytes);
  return word;
}

__attribute__((target("popcnt"))) uint64_t CountByWord(const std::byte* from,
                                                       uint64_t bytes) {
  uint64_t ones = 0;
  for (; bytes >= 8; from += 8, bytes -= 8) {
    ones += static_cast<uint64_t>(std::popcount(Load8(from, 8)));
  }
  return ones + static_cast<uint64_t>(std::popcount(Load8(from, bytes)));
}

__attribute__((target("avx512f,avx512vpopcntdq"))) uint64_t
CountByLine(const std::byte* from, uint64_t bytes) {
  __m512i ones = _mm512_setzero_si512();
  for (; bytes >= 64; from += 64, bytes -= 64) {
    ones =
        _mm512_add_epi64(ones, _mm512_popcnt_epi64(_mm512_loadu_si512(from)));
  }
  // _mm512_reduce_add_epi64 is not used: g++ 12 warns of an uninitialised value
  // inside it.
  alignas(64) std::array<uint64_t, 8> sums;
  _mm512_store_si512(sums.data(), ones);
  return std::accumulate(sums.begin(), sums.end(), CountByWord(from, bytes));
}

uint64_t CountPortably(const std::byte* from, uint64_t bytes) {
  uint64_t ones = 0;
  for (uint64_t i = 0; i < bytes; ++i) {
    ones +=
        static_cast<uint64_t>(std::popcount(std::to_integer<uint8_t>(from[i])));
  }
  return ones;
}

Counter ChooseCounter() {
  if (__builtin_cpu_supports("avx512vpopcntdq") != 0) return CountByLine;
  return __builtin_cpu_supports("popcnt") != 0 ? CountByWord : CountPortably;
}

}  // namespace

uint64_t CountOnes(std::span<const std::byte> bytes) {
  static const Counter count = ChooseCounter();
  return count(bytes.data(), bytes.size());
}

}  // namespace alpheus::bench
