// SPDX-License-Identifier: Apache-2.0
// thread_token: a small number that names the calling thread.
//
// In the simulator many clients are fibers of one thread; SetThreadToken gives
// each its own.
#ifndef ALPHEUS_LOG_BASE_THREAD_TOKEN_H_
#define ALPHEUS_LOG_BASE_THREAD_TOKEN_H_

#include <atomic>
#include <cstdint>

namespace alpheus {

namespace internal {

inline uint32_t NextThreadToken() {
  static std::atomic<uint32_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

inline uint32_t& ThreadTokenSlot() {
  static constinit thread_local uint32_t token = 0;
  return token;
}

}  // namespace internal

// Never 0; differs between threads of the process.
inline uint32_t ThreadToken() {
  uint32_t& token = internal::ThreadTokenSlot();
  if (token == 0) token = internal::NextThreadToken();
  return token;
}

inline void SetThreadToken(uint32_t token) {
  internal::ThreadTokenSlot() = token;
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_THREAD_TOKEN_H_
