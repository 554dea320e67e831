// SPDX-License-Identifier: Apache-2.0
#include "api/node/populator.h"

#include <sys/mman.h>

#include <algorithm>
#include <thread>

namespace alpheus {
namespace {

// As much as takes longer than a thread to start.
constexpr size_t kStepBytes = size_t{4} << 20;

}  // namespace

Populator::Populator(std::span<std::byte> pages) : pages_(pages) {
  if (pages_.size() > kStepBytes && std::thread::hardware_concurrency() > 1) {
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
    const size_t bytes = std::min(left.size(), kStepBytes);
    if (madvise(left.data(), bytes, MADV_POPULATE_READ) != 0) return;
    left = left.subspan(bytes);
  }
#endif
}

}  // namespace alpheus
