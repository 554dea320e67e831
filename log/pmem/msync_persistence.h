// SPDX-License-Identifier: Apache-2.0
// msync_persistence: the persistence primitive on a plain file.
//
// Idea: where the file system has no DAX, the page cache takes the place of the
// CPU cache and msync that of clwb. Flush only notes the pages, per thread.
// Fence syncs each run of pages by one msync, so that a record costs one system
// call, not one per piece. A thread notes up to kRangesMax runs; further ones
// are synced at once.
//
// Persistence: after a failed msync the kernel may have dropped the dirty
// pages, so the failure sticks: every later Fence fails too (a retry that
// "succeeds" would acknowledge lost data).
// Thread safety: concept (persistence.h).
// References: msync(2); fsyncgate (LWN 752063).
#ifndef ALPHEUS_LOG_PMEM_MSYNC_PERSISTENCE_H_
#define ALPHEUS_LOG_PMEM_MSYNC_PERSISTENCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "log/pmem/persistence.h"
#include "log/pmem/region_alarm.h"

namespace alpheus {

class MsyncPersistence {
 public:
  // Function that syncs pages; returns 0, or the errno of the failure. Tests
  // inject one; SyncPages is the real one.
  using SyncFunction = int (*)(const void* address, size_t bytes);

  static constexpr bool kFenceIsCall = true;
  static constexpr uint64_t kWatermarkPeriod = 16;
  // Number of runs noted per thread. A batch has two where it wraps around the
  // ring's end, and a few more in the fixed part.
  static constexpr size_t kRangesMax = 16;

  // Calls msync(MS_SYNC) for the pages that hold the range.
  static int SyncPages(const void* address, size_t bytes);

  // `path` is for error messages. Once `alarm` is raised, fences fail.
  explicit MsyncPersistence(std::string path, SyncFunction sync = SyncPages,
                            std::shared_ptr<const RegionAlarm> alarm = nullptr)
      : path_(std::move(path)), sync_(sync), alarm_(std::move(alarm)) {}

  void Store8(uint64_t* word, uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  void Copy(void* dst, const void* src, size_t bytes) {
    std::memcpy(dst, src, bytes);
  }
  void CopyLinesNt(void* dst, const void* src, size_t lines);
  void StoreLineNt(void* dst, const LineWords& words) {
    CopyLinesNt(dst, &words, 1);
  }
  void Flush(const void* address, size_t bytes);
  bool Fence();

  // Does nothing: a hint is not worth a system call.
  void FlushHint(const void* /*address*/, size_t /*bytes*/) {}

  // Returns Unavailable with the file and the errno after a failed Fence; else
  // the alarm's status.
  absl::Status Error() const;
  void YieldPoint(const char* /*name*/) {}

 private:
  static uint64_t NextInstance();
  void Sync(uintptr_t begin, uintptr_t end);

  std::string path_;
  SyncFunction sync_;
  const std::shared_ptr<const RegionAlarm> alarm_;  // nullptr: none
  const uint64_t instance_ = NextInstance();
  std::atomic<int> errno_{0};  // first failure; never cleared
};

static_assert(Persistence<MsyncPersistence>);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_PMEM_MSYNC_PERSISTENCE_H_
