// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/msync_persistence.h"

#include <libpmem.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/pmem/counters.h"

namespace alpheus {
namespace {

struct PageRange {
  uint64_t instance = 0;  // of its MsyncPersistence; 0: free
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// Pages noted by this thread and not fenced yet, of all its regions; each fence
// takes its own. (By number, not by address: addresses are reused.) No
// constructor and no destructor: static and other thread-local objects may
// close logs in their destructors, after those of this file would have run.
constinit thread_local std::array<PageRange, MsyncPersistence::kRangesMax>
    pending_pages;
static_assert(std::is_trivially_destructible_v<decltype(pending_pages)>);

}  // namespace

uint64_t MsyncPersistence::NextInstance() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

int MsyncPersistence::SyncPages(const void* address, size_t bytes) {
  ++ThreadPersistenceCounters().msyncs;
  return pmem_msync(address, bytes) == 0 ? 0 : errno;
}

void MsyncPersistence::CopyLinesNt(void* dst, const void* src, size_t lines) {
  std::memcpy(dst, src, lines * kLineBytes);
  Flush(dst, lines * kLineBytes);
}

void MsyncPersistence::Flush(const void* address, size_t bytes) {
  if (bytes == 0) return;
  const auto start = reinterpret_cast<uintptr_t>(address);
  const uintptr_t begin = RoundDown(start, kPageBytes);
  const uintptr_t end = RoundUp(start + bytes, kPageBytes);
  PageRange* free = nullptr;
  for (PageRange& known : pending_pages) {
    if (known.instance == 0 && free == nullptr) free = &known;
    if (known.instance == instance_ && begin <= known.end &&
        known.begin <= end) {
      known.begin = std::min(known.begin, begin);
      known.end = std::max(known.end, end);
      return;
    }
  }
  if (free == nullptr) {
    Sync(begin, end);
    return;
  }
  *free = {instance_, begin, end};
}

bool MsyncPersistence::Fence() {
  ++ThreadPersistenceCounters().fences;
  for (PageRange& range : pending_pages) {
    if (range.instance != instance_) continue;
    Sync(range.begin, range.end);
    range = PageRange();
  }
  if (errno_.load() != 0) return false;
  return alarm_ == nullptr || !alarm_->is_raised();
}

void MsyncPersistence::Sync(uintptr_t begin, uintptr_t end) {
  const int error = sync_(reinterpret_cast<const void*>(begin), end - begin);
  if (error == 0) return;
  int none = 0;
  errno_.compare_exchange_strong(none, error);
}

absl::Status MsyncPersistence::Error() const {
  const int error = errno_.load();
  if (error == 0 && alarm_ != nullptr) return alarm_->MediumError();
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      path_, ": msync failed with errno ", error, " (", std::strerror(error),
      "): what reached the medium is unknown. Check the device, then reopen "
      "the log; recovery finds out what survived"));
}

}  // namespace alpheus
