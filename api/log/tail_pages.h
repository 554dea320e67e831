// SPDX-License-Identifier: Apache-2.0
// tail_pages: maps the pages that the next appends will write.
//
// Idea: an opening does not touch what lies behind the log's end, so the first
// lap of appends would take a fault for each page. The log's service thread
// maps pages ahead of the tail instead, by how fast the tail moved since it
// last looked. Nothing depends on it: an append that overtakes it takes the
// fault.
//
// Invariants:
//   TP1. Each page is asked for at most once, as it then stays mapped.
//   TP2. One call maps no more than kAheadBytesMax, so that the thread comes
//        back to its other work.
//
// Thread safety: one thread.
// References: madvise(2) MADV_POPULATE_READ.
#ifndef ALPHEUS_API_LOG_TAIL_PAGES_H_
#define ALPHEUS_API_LOG_TAIL_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "log/base/ids.h"
#include "log/format/layout.h"

namespace alpheus {

class TailPages {
 public:
  static constexpr uint64_t kAheadBytesMin = uint64_t{1} << 20;
  static constexpr uint64_t kAheadBytesMax = uint64_t{16} << 20;

  // Maps the pages of these bytes; false: they can't be mapped this way.
  using MapPages = std::function<bool(std::span<std::byte>)>;

  // The log goes on at `tail`. Without `map` nothing is ever mapped.
  TailPages(Ring ring, RingOffset tail, MapPages map);

  // The tail is at `tail` now.
  void KeepAhead(RingOffset tail);

 private:
  const Ring ring_;
  const MapPages map_;
  RingOffset tail_;        // at the last call
  RingOffset mapped_;      // pages before it are mapped, or were overtaken
  RingOffset mapped_end_;  // a lap behind the first tail: all are mapped then
};

// By madvise. Of pages in memory and of DAX, which can be written once they are
// mapped for reading; a file system that counts written pages takes a fault for
// each all the same.
bool PopulateForReading(std::span<std::byte> pages);

}  // namespace alpheus

#endif  // ALPHEUS_API_LOG_TAIL_PAGES_H_
