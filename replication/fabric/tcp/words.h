// SPDX-License-Identifier: Apache-2.0
// words: copies to and from registered memory, 8-byte words whole.
//
// Other threads read registered memory while bytes land in it, and a connection
// may break in the middle of a write. Neither may ever show half of an aligned
// word that the write covers (FB1 of fabric.h). A kernel that receives right
// into the region does not promise that: it splits where packets end.
//
// Thread safety: the registered side may be touched by other threads.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_WORDS_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace alpheus::fabric::tcp {

inline constexpr size_t kWordBytes = sizeof(uint64_t);

// Returns the bytes from `place` to the next word.
inline size_t BytesToWord(const std::byte* place) {
  return (kWordBytes - reinterpret_cast<uintptr_t>(place) % kWordBytes) %
         kWordBytes;
}

// Returns how many of `arrived` bytes may land at `to` when more will follow:
// up to the end of a word.
inline size_t WholeWords(const std::byte* to, size_t arrived) {
  const size_t head = BytesToWord(to);
  if (arrived <= head) return arrived == head ? head : 0;
  return head + (arrived - head) / kWordBytes * kWordBytes;
}

// Order: relaxed, as no order is promised within one write. Completions are
// handed over under the adapter's lock.
inline void StoreWords(std::byte* to, std::span<const std::byte> from) {
  const std::byte* source = from.data();
  size_t left = from.size();
  const auto store_bytes = [&](size_t count) {
    for (; count > 0; --count, --left) {
      __atomic_store_n(reinterpret_cast<uint8_t*>(to++),
                       static_cast<uint8_t>(*source++), __ATOMIC_RELAXED);
    }
  };
  const size_t head = BytesToWord(to);
  store_bytes(head < left ? head : left);
  for (; left >= kWordBytes; left -= kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, source, kWordBytes);
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), word, __ATOMIC_RELAXED);
    to += kWordBytes;
    source += kWordBytes;
  }
  store_bytes(left);
}

inline void LoadWords(std::span<const std::byte> from, std::byte* to) {
  const std::byte* source = from.data();
  size_t left = from.size();
  const auto load_bytes = [&](size_t count) {
    for (; count > 0; --count, --left) {
      *to++ = static_cast<std::byte>(__atomic_load_n(
          reinterpret_cast<const uint8_t*>(source++), __ATOMIC_RELAXED));
    }
  };
  const size_t head = BytesToWord(source);
  load_bytes(head < left ? head : left);
  for (; left >= kWordBytes; left -= kWordBytes) {
    const uint64_t word = __atomic_load_n(
        reinterpret_cast<const uint64_t*>(source), __ATOMIC_RELAXED);
    std::memcpy(to, &word, kWordBytes);
    to += kWordBytes;
    source += kWordBytes;
  }
  load_bytes(left);
}

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_WORDS_H_
