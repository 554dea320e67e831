// SPDX-License-Identifier: Apache-2.0
#include "log/base/fork_watch.h"

#include <pthread.h>

#include "log/base/check.h"

namespace alpheus {
namespace {

void CountFork() {
  internal::fork_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::atomic<uint32_t> internal::fork_count{0};

ForkWatch::ForkWatch() {
  static const bool is_counting =
      pthread_atfork(nullptr, nullptr, &CountFork) == 0;
  ALPHEUS_CHECK(is_counting, "there is memory for a handler of forks");
  count_ = internal::fork_count.load(std::memory_order_relaxed);
}

}  // namespace alpheus
