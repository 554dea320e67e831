// SPDX-License-Identifier: Apache-2.0
// header_search: finds records in places where none is known to begin.
//
// Idea: after an unreadable place, and after the end of the log, each line may
// be the header of a record. All lines are examined, so the cost grows with
// what is searched, not with what it holds. Lines are read through a window;
// where the region is a file, past the mapping (file_view.h).
//
// Invariants:
//   HS1. The result does not depend on how the bytes are read.
//   HS2. A header that is found was checked as a whole, on one copy.
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
  // Accepts headers of the epochs of `table`. No record crosses `limit`, which
  // is at most one capacity after the head. The ring begins at byte
  // `ring_begin` of `file`, if there is one. Both must outlive the search.
  HeaderSearch(Ring ring, const EpochTable& table, RingOffset limit,
               FileView file = {}, uint64_t ring_begin = 0)
      : ring_(ring),
        file_(file),
        ring_begin_(ring_begin),
        limit_(limit),
        cursor_(ring, table, LogPosition(), limit) {}

  // Finds the first header that holds in [`*at`, `until`). Moves `*at` to its
  // line and fills `record`. Returns false if there is none; `*at` is then
  // after the last line examined.
  bool Next(RingOffset* at, RingOffset until, RecordView* record);

 private:
  // Returns the place of the line to read; nullptr if it and all lines before
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
