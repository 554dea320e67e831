// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_file.h"

#include <algorithm>
#include <cstring>

#include "log/base/check.h"

namespace alpheus::wal {

void WalFile::Extend(Lsn lsn, std::span<const std::byte> bytes,
                     bool is_durable) {
  const uint64_t size = size_.load(std::memory_order_relaxed);
  extents_.push_back({size, bytes});
  size_.store(size + bytes.size(), std::memory_order_release);
  if (is_durable) durable_lsn_.store(lsn.value, std::memory_order_release);
  last_lsn_.store(lsn.value, std::memory_order_release);
}

void WalFile::Truncate(Lsn lsn, uint64_t size, uint64_t seconds) {
  ALPHEUS_CHECK(size <= size_.load(std::memory_order_relaxed),
                "a file only becomes shorter (WF1, wal_file.h)");
  while (!extents_.empty() && extents_.back().offset >= size) {
    extents_.pop_back();
  }
  if (!extents_.empty()) {
    Extent& last = extents_.back();
    const uint64_t kept = size - last.offset;
    last.bytes = last.bytes.first(std::min(last.bytes.size(), kept));
  }
  size_.store(size, std::memory_order_release);
  last_lsn_.store(lsn.value, std::memory_order_release);
  Touch(seconds);
}

size_t WalFile::Read(uint64_t offset, std::span<std::byte> out) {
  const MutexLock lock(mutex);
  auto extent = std::ranges::upper_bound(extents_, offset, {}, &Extent::offset);
  if (extent == extents_.begin()) return 0;
  --extent;
  size_t copied = 0;
  for (; extent != extents_.end() && copied < out.size(); ++extent) {
    const uint64_t skipped = offset + copied - extent->offset;
    if (skipped >= extent->bytes.size()) break;  // after the end
    const auto piece = extent->bytes.subspan(
        skipped, std::min(extent->bytes.size() - skipped, out.size() - copied));
    std::memcpy(out.data() + copied, piece.data(), piece.size());
    copied += piece.size();
  }
  return copied;
}

}  // namespace alpheus::wal
