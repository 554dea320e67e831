// SPDX-License-Identifier: Apache-2.0
#include "log/base/mutex.h"

namespace alpheus {

void Mutex::LockBehindOthers() {
  // Who comes by here leaves it awaited, for those who may sleep behind it.
  while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
    word_.wait(kAwaited, std::memory_order_relaxed);
  }
}

void Mutex::WakeOne() { word_.notify_one(); }

}  // namespace alpheus
