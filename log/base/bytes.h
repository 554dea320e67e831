// SPDX-License-Identifier: Apache-2.0
// bytes: arithmetic on sizes, and lines of the persistence domain.
#ifndef ALPHEUS_LOG_BASE_BYTES_H_
#define ALPHEUS_LOG_BASE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace alpheus {

// Unit in which the cache writes back and records are placed.
inline constexpr uint64_t kLineBytes = 64;

// Unit in which copies are kept apart (P-S3: an XPLine is 256 B, a page 4 KiB).
inline constexpr uint64_t kPageBytes = 4096;

// Rounds up to a multiple of `unit`, a power of two. Requires: no overflow.
constexpr uint64_t RoundUp(uint64_t n, uint64_t unit) {
  return (n + unit - 1) & ~(unit - 1);
}

// Rounds down to a multiple of `unit`, a power of two.
constexpr uint64_t RoundDown(uint64_t n, uint64_t unit) {
  return n & ~(unit - 1);
}

// Content of one line as words, for stores from registers.
struct LineWords {
  uint64_t word[kLineBytes / sizeof(uint64_t)];
};

// Return views of text as bytes and back; no copy, same lifetime.
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_BYTES_H_
