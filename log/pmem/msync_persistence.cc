// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/msync_persistence.h"

#include <libpmem.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/pmem/counters.h"

namespace alpheus {
namespace {

struct PageRange {
  uint64_t instance;  // of the MsyncPersistence that noted it
  uintptr_t begin;
  uintptr_t end;
};

// Pages noted by this thread and not fenced yet, of all regions it uses; each
// fence takes its own. (By number, not by address: an address comes again.)
thread_local std::vector<PageRange> pending_pages;

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
  PageRange range{instance_, RoundDown(start, kPageBytes),
                  RoundUp(start + bytes, kPageBytes)};
  for (PageRange& known : pending_pages) {
    if (known.instance == instance_ && range.begin <= known.end &&
        known.begin <= range.end) {
      known.begin = std::min(known.begin, range.begin);
      known.end = std::max(known.end, range.end);
      return;
    }
  }
  pending_pages.push_back(range);
}

bool MsyncPersistence::Fence() {
  ++ThreadPersistenceCounters().fences;
  for (const PageRange& range : pending_pages) {
    if (range.instance != instance_) continue;
    const int error = sync_(reinterpret_cast<const void*>(range.begin),
                            range.end - range.begin);
    if (error != 0) {
      int none = 0;
      errno_.compare_exchange_strong(none, error);
    }
  }
  std::erase_if(pending_pages, [this](const PageRange& range) {
    return range.instance == instance_;
  });
  return errno_.load() == 0;
}

absl::Status MsyncPersistence::Error() const {
  const int error = errno_.load();
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      path_, ": msync failed with errno ", error, " (", std::strerror(error),
      "): what reached the medium is unknown. Check the device, then reopen "
      "the log; recovery finds out what survived"));
}

}  // namespace alpheus
