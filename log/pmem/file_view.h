// SPDX-License-Identifier: Apache-2.0
// file_view: the file of a region, read beside its mapping.
//
// Idea: a page of a mapping costs a fault when it is touched first, on some
// machines a hundred times what it costs to copy it. Whoever looks through
// empty space once reads it from the file instead, and passes over what the
// file system knows was never written.
//
// Invariants:
//   FV1. What is read is what the mapping shows: both are the page cache, or
//        memory itself (DAX). Bytes that somebody writes meanwhile may be seen
//        in any mixture, as through the mapping.
//   FV2. It only saves time: where a file can't be read so, Read says no, and
//        the mapping is read.
//
// Thread safety: thread-compatible; may be copied. The region that it came from
// must outlive it, and keep its file (Region::GiveUp).
// References: lseek(2) SEEK_DATA.
#ifndef ALPHEUS_LOG_PMEM_FILE_VIEW_H_
#define ALPHEUS_LOG_PMEM_FILE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus {

class FileView {
 public:
  // Of no file: Read always says no.
  FileView() = default;
  // Of a regular file that is open for reading.
  explicit FileView(int fd) : fd_(fd) {}

  // Fills `into` with the bytes from `offset` on. False: they can't be read
  // this way, and `into` holds anything.
  bool Read(uint64_t offset, std::span<std::byte> into) const;

  // The first offset from `offset` to `end` at which something may have been
  // written; all bytes before it are zero. `offset` itself if nobody knows.
  uint64_t SkipUnwritten(uint64_t offset, uint64_t end) const;

 private:
  int fd_ = -1;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_VIEW_H_
