// SPDX-License-Identifier: Apache-2.0
#include "api/log/tail_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace alpheus {

TailPages::TailPages(Ring ring, RingOffset tail, MapPages map)
    : ring_(ring),
      map_(std::move(map)),
      tail_(tail),
      mapped_(tail),
      mapped_end_(map_ == nullptr ? tail : tail + ring.capacity()) {}

void TailPages::KeepAhead(RingOffset tail) {
  const uint64_t ahead =
      std::clamp(2 * (tail - tail_), kAheadBytesMin, kAheadBytesMax);
  tail_ = tail;
  mapped_ = std::max(mapped_, tail);
  const RingOffset goal = std::min(tail + ahead, mapped_end_);
  while (mapped_ < goal) {
    const uint64_t bytes = std::min(goal - mapped_, ring_.UntilEnd(mapped_));
    if (!map_({ring_.At(mapped_), bytes})) {
      mapped_end_ = mapped_;
      return;
    }
    mapped_ = mapped_ + bytes;
  }
}

bool PopulateForReading(std::span<std::byte> pages) {
#if defined(MADV_POPULATE_READ)
  // Whole pages: those at the ends may be asked for twice.
  const auto begin = reinterpret_cast<uintptr_t>(pages.data());
  const uintptr_t first = begin / kPageBytes * kPageBytes;
  return madvise(pages.data() - (begin - first), begin - first + pages.size(),
                 MADV_POPULATE_READ) == 0;
#else
  static_cast<void>(pages);
  return false;
#endif
}

}  // namespace alpheus
