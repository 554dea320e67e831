// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/shadow_persistence.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "log/base/check.h"

namespace alpheus {
namespace {

// Word by word: peers may be writing other words of the line, and threads read
// it. Relaxed: the caller of the flush has ordered what it needs, and a line as
// a whole promises nothing.
LineWords LoadLine(std::byte* from) {
  auto* const words = reinterpret_cast<uint64_t*>(from);
  LineWords line;
  for (size_t i = 0; i < std::size(line.word); ++i) {
    line.word[i] = std::atomic_ref(words[i]).load(std::memory_order_relaxed);
  }
  return line;
}

void StoreLine(std::byte* to, const std::byte* from) {
  auto* const words = reinterpret_cast<uint64_t*>(to);
  LineWords line;
  std::memcpy(&line, from, sizeof(line));
  for (size_t i = 0; i < std::size(line.word); ++i) {
    std::atomic_ref(words[i]).store(line.word[i], std::memory_order_relaxed);
  }
}

}  // namespace

ShadowPersistence::ShadowPersistence(std::span<std::byte> copy,
                                     std::unique_ptr<ShadowedMedium> medium)
    : copy_(copy), medium_(std::move(medium)) {
  ALPHEUS_CHECK(copy_.size() == medium_->bytes().size(), "a copy of the whole");
}

size_t ShadowPersistence::OffsetOf(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto begin = reinterpret_cast<uintptr_t>(copy_.data());
  ALPHEUS_CHECK(at >= begin, "flushed bytes lie in the copy");
  ALPHEUS_CHECK(at - begin <= copy_.size(), "flushed bytes lie in the copy");
  return at - begin;
}

std::byte* ShadowPersistence::OnMedium(const void* address) const {
  return medium_->bytes().data() + OffsetOf(address);
}

void ShadowPersistence::CopyLinesNt(void* dst, const void* src, size_t lines) {
  auto* const to = static_cast<std::byte*>(dst);
  const auto* const from = static_cast<const std::byte*>(src);
  for (size_t i = 0; i < lines; ++i) {
    StoreLine(to + i * kLineBytes, from + i * kLineBytes);
  }
  CopyOut(OffsetOf(dst), lines * kLineBytes);
}

void ShadowPersistence::Flush(const void* address, size_t bytes) {
  if (bytes == 0) return;
  CopyOut(OffsetOf(address), bytes);
}

void ShadowPersistence::CopyOut(size_t offset, size_t bytes) {
  const size_t end = RoundUp(offset + bytes, kLineBytes);
  ALPHEUS_CHECK(end <= RoundUp(copy_.size(), kLineBytes),
                "flushed bytes lie in the copy");
  size_t line = RoundDown(offset, kLineBytes);
  while (line < end) {
    const size_t page = line / kPageBytes;
    const size_t page_end = std::min(end, (page + 1) * kPageBytes);
    // SHP1.
    const MutexLock lock(locks_[page % kLocks]);
    for (; line < page_end; line += kLineBytes) {
      medium_->StoreLine(line, LoadLine(copy_.data() + line));
    }
    medium_->Order();
  }
}

}  // namespace alpheus
