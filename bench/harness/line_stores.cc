// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/line_stores.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace alpheus::bench {
namespace {

__attribute__((target("clwb"))) void FlushByClwb(const std::byte* line,
                                                 const std::byte* end) {
  for (; line < end; line += kLineBytes) {
    _mm_clwb(const_cast<std::byte*>(line));
  }
}

void FlushByClflush(const std::byte* line, const std::byte* end) {
  for (; line < end; line += kLineBytes) _mm_clflush(line);
}

// Bytes from `address` to the start of the next line; 0 on a line.
uint64_t UntilLine(const std::byte* address) {
  const auto value = reinterpret_cast<uintptr_t>(address);
  return RoundUp(value, kLineBytes) - value;
}

void CopyThroughCache(std::byte* to, const std::byte* from, uint64_t bytes) {
  if (bytes == 0) return;
  std::memcpy(to, from, bytes);
  FlushRange(to, bytes);
}

}  // namespace

void StoreLinesCached(void* to, const void* from, uint64_t lines) {
  std::memcpy(to, from, lines * kLineBytes);
  FlushRange(to, lines * kLineBytes);
}

void StoreLinesNt16(void* to, const void* from, uint64_t lines) {
  auto* target = static_cast<__m128i*>(to);
  const auto* source = static_cast<const __m128i*>(from);
  for (uint64_t i = 0; i < lines; ++i, target += 4, source += 4) {
    for (int k = 0; k < 4; ++k) {
      _mm_stream_si128(target + k, _mm_loadu_si128(source + k));
    }
  }
}

__attribute__((target("avx512f"))) void StoreLinesNt64(void* to,
                                                       const void* from,
                                                       uint64_t lines) {
  auto* target = static_cast<__m512i*>(to);
  const auto* source = static_cast<const __m512i*>(from);
  for (uint64_t i = 0; i < lines; ++i) {
    _mm512_stream_si512(target + i, _mm512_loadu_si512(source + i));
  }
}

bool HasClwb() {
  static const bool has = __builtin_cpu_supports("clwb") != 0;
  return has;
}

bool HasNt64() {
  static const bool has = __builtin_cpu_supports("avx512f") != 0;
  return has;
}

StoreLines WidestNt() { return HasNt64() ? StoreLinesNt64 : StoreLinesNt16; }

void FlushRange(const void* address, uint64_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(address);
  const std::byte* const line =
      begin - reinterpret_cast<uintptr_t>(begin) % kLineBytes;
  if (HasClwb()) {
    FlushByClwb(line, begin + bytes);
  } else {
    FlushByClflush(line, begin + bytes);
  }
}

void CopyAndFlush(std::byte* to, const std::byte* from, uint64_t bytes) {
  static const StoreLines store = WidestNt();
  const uint64_t head = std::min(UntilLine(to), bytes);
  const uint64_t lines = (bytes - head) / kLineBytes;
  const uint64_t middle = lines * kLineBytes;
  CopyThroughCache(to, from, head);
  if (lines != 0) store(to + head, from + head, lines);
  CopyThroughCache(to + head + middle, from + head + middle,
                   bytes - head - middle);
}

void Fence() { _mm_sfence(); }

}  // namespace alpheus::bench
