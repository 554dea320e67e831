// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/copy_ranges.h"

#include <algorithm>

#include "log/base/bytes.h"

namespace alpheus::recovery {
namespace {

// Adds bytes that may wrap at the end of the ring.
void AddWhole(const KeptBytes& kept, ReportSet sources, uint64_t ring_capacity,
              std::vector<CopyRange>* ranges) {
  const uint64_t bytes = kept.end - kept.begin;
  const uint64_t until_end =
      std::min(bytes, ring_capacity - kept.begin.value % ring_capacity);
  if (until_end > 0) {
    AddRange(kept.begin, until_end, sources, ring_capacity, ranges);
  }
  if (bytes > until_end) {
    AddRange(kept.begin + until_end, bytes - until_end, sources, ring_capacity,
             ranges);
  }
}

}  // namespace

void AddRange(RingOffset offset, uint64_t bytes, ReportSet sources,
              uint64_t ring_capacity, std::vector<CopyRange>* ranges) {
  const uint64_t place = offset.value % ring_capacity;
  if (!ranges->empty()) {
    CopyRange& last = ranges->back();
    if (last.sources == sources && last.place + last.bytes == place) {
      last.bytes += bytes;
      return;
    }
  }
  ranges->push_back({place, bytes, sources});
}

std::vector<CopyRange> RangesOf(const Decision& decision,
                                std::span<const StateReport> reports,
                                std::span<const CopyRun> copies,
                                uint64_t ring_capacity) {
  std::vector<CopyRange> ranges;
  auto copy = copies.begin();
  RingOffset at = decision.head.offset;
  for (const KeptRun& run : decision.kept) {
    if (run.unread) {
      while (copy != copies.end() && copy->end <= run.first) ++copy;
      if (copy != copies.end() && copy->first <= run.first) {
        AddWhole(*run.unread, copy->sources, ring_capacity, &ranges);
      }
      at = run.unread->end;
      continue;
    }
    for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
      const ReportedRecord& record = RecordAt(reports, run, lsn);
      while (copy != copies.end() && copy->end <= lsn) ++copy;
      if (copy != copies.end() && copy->first <= lsn) {
        if (at != record.offset) {
          AddRange(at, kLineBytes, copy->sources, ring_capacity, &ranges);
        }
        AddRange(record.offset, record.lines * kLineBytes, copy->sources,
                 ring_capacity, &ranges);
      }
      at = record.end();
    }
  }
  return ranges;
}

std::vector<CopyRun> CopiesOfAll(const Decision& decision) {
  std::vector<CopyRun> copies;
  copies.reserve(decision.kept.size());
  for (const KeptRun& run : decision.kept) {
    copies.push_back({run.first, run.end, run.holders});
  }
  return copies;
}

uint64_t RecordCount(std::span<const CopyRun> copies) {
  uint64_t records = 0;
  for (const CopyRun& copy : copies) records += copy.end - copy.first;
  return records;
}

}  // namespace alpheus::recovery
