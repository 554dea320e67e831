// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/populator.h"

#include <sys/mman.h>

#include <algorithm>
#include <thread>

namespace alpheus {
namespace {

// As much as takes longer than a thread to start.
constexpr size_t kFewBytes = size_t{4} << 20;
// The kernel maps so many bytes of a file that it has in memory at one fault.
constexpr size_t kFaultAroundBytes = size_t{64} << 10;
constexpr size_t kOnePageBytes = 4096;

}  // namespace

Populator::Populator(std::span<std::byte> pages, bool is_in_page_cache)
    : pages_(pages),
      step_bytes_(is_in_page_cache ? kFaultAroundBytes : kFewBytes),
      asked_bytes_(is_in_page_cache ? kOnePageBytes : kFewBytes) {
  if (pages_.size() > kFewBytes && std::thread::hardware_concurrency() > 1) {
    // Without a thread it is done here.
    if (thread_.Start([this] { Run(); }).ok()) return;
  }
  Run();
}

Populator::~Populator() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.Join();
}

void Populator::Run() {
#if defined(MADV_POPULATE_READ)
  for (std::span<std::byte> left = pages_; !left.empty();) {
    if (stop_.load(std::memory_order_relaxed)) return;
    const size_t asked = std::min(left.size(), asked_bytes_);
    if (madvise(left.data(), asked, MADV_POPULATE_READ) != 0) return;
    left = left.subspan(std::min(left.size(), step_bytes_));
  }
#endif
}

}  // namespace alpheus
