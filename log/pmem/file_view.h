// SPDX-License-Identifier: Apache-2.0
// file_view: reads the file of a region past its mapping.
//
// Idea: the first touch of a mapped page costs a fault, on some machines a
// hundred times the cost of copying it. A scan of empty space reads the file
// instead, and skips what the file system knows was never written.
//
// Invariants:
//   FV1. Reads show the same bytes as the mapping: both are the page cache, or
//        memory itself (DAX). Bytes being written may be seen in any mixture,
//        as through the mapping.
//   FV2. It only saves time: where a file can't be read so, Read returns false,
//        and the caller reads the mapping.
//
// Thread safety: thread-compatible; may be copied. The region that it came from
// must outlive it, and keep its file (Region::Detach).
// References: lseek(2) SEEK_DATA.
#ifndef ALPHEUS_LOG_PMEM_FILE_VIEW_H_
#define ALPHEUS_LOG_PMEM_FILE_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus {

class FileView {
 public:
  // View of no file: Read always returns false.
  FileView() = default;
  // View of a regular file that is open for reading.
  explicit FileView(int fd) : fd_(fd) {}

  // Fills `into` with the bytes from `offset` on. Returns false if they can't
  // be read this way; `into` then holds anything.
  bool Read(uint64_t offset, std::span<std::byte> into) const;

  // Returns the first offset from `offset` to `end` at which data may have been
  // written; all bytes before it are zero. `offset` itself if unknown.
  uint64_t SkipUnwritten(uint64_t offset, uint64_t end) const;

 private:
  int fd_ = -1;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_FILE_VIEW_H_
