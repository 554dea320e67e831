// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/file_view.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace alpheus {

bool FileView::Read(uint64_t offset, std::span<std::byte> into) const {
  if (fd_ < 0) return false;
  while (!into.empty()) {
    const ssize_t bytes =
        pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    // The end of the file counts as an error: the mapping continues after it.
    if (bytes <= 0) return false;
    offset += static_cast<uint64_t>(bytes);
    into = into.subspan(static_cast<size_t>(bytes));
  }
  return true;
}

uint64_t FileView::SkipUnwritten(uint64_t offset, uint64_t end) const {
  if (fd_ < 0) return offset;
  const off_t data = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
  if (data >= 0) return std::min(static_cast<uint64_t>(data), end);
  // ENXIO: only a hole up to the end of the file.
  return errno == ENXIO ? end : offset;
}

}  // namespace alpheus
