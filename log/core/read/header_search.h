// SPDX-License-Identifier: Apache-2.0
// header_search: finds records where none is known to begin.
//
// Idea: behind a place that can't be read, and behind the end of the log, each
// line may be the header of a record. All of them are looked at, so what they
// cost is by the capacity of the ring, not by what is in it: lines are read
// through a window, past the mapping where the region is a file (file_view.h).
//
// Invariants:
//   HS1. What is found does not depend on how the bytes are read.
//   HS2. A header that is found held as a whole: it is judged on one copy.
// Thread safety: one thread; the ring may be written meanwhile.
// References: protocol P-A4.3, P-H9, P-H11.
#ifndef ALPHEUS_LOG_CORE_READ_HEADER_SEARCH_H_
#define ALPHEUS_LOG_CORE_READ_HEADER_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/pmem/file_view.h"

namespace alpheus {

class HeaderSearch {
 public:
  // Takes headers of the epochs of `table`; nothing crosses `limit`, which is
  // at most one capacity behind the head. The ring begins at byte `ring_begin`
  // of `file`, if there is one. Both must outlive the search.
  HeaderSearch(Ring ring, const EpochTable& table, RingOffset limit,
               FileView file = {}, uint64_t ring_begin = 0)
      : ring_(ring),
        file_(file),
        ring_begin_(ring_begin),
        limit_(limit),
        cursor_(ring, table, LogPosition(), limit) {}

  // Goes from line `*at` on to the first header that holds, in front of
  // `until`, and fills `record`. False: there is none, and `*at` is behind the
  // last line that was looked at.
  bool Next(RingOffset* at, RingOffset until, RecordView* record);

 private:
  // Where the line lies to be read; nullptr if it and all lines before
  // window_end_ were never written.
  const std::byte* Line(RingOffset at);
  void MoveWindow(RingOffset at);

  const Ring ring_;
  const FileView file_;
  const uint64_t ring_begin_;  // in the file
  const RingOffset limit_;
  const RecordCursor cursor_;
  RingOffset window_begin_;
  RingOffset window_end_;
  const std::byte* window_ = nullptr;
  std::vector<std::byte> buffer_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_HEADER_SEARCH_H_
