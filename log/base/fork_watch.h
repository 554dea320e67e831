// SPDX-License-Identifier: Apache-2.0
// fork_watch: whether this process is a fork's child of the one that it was.
//
// Idea: a child has a copy of its parent's objects, and none of its threads;
// what is behind them, such as a mapped file and its lock, it shares. So what
// is made for one process asks this before it goes on. Each fork counts in the
// child, by a handler of the C library; to ask is one load and a comparison.
// Children by posix_spawn or vfork have no copy, and clone(2) tells nobody.
//
// Thread safety: all members concurrently.
// References: pthread_atfork(3).
#ifndef ALPHEUS_LOG_BASE_FORK_WATCH_H_
#define ALPHEUS_LOG_BASE_FORK_WATCH_H_

#include <atomic>
#include <cstdint>

namespace alpheus {

namespace internal {

// From the process in which the first watch was made down to this one.
extern std::atomic<uint32_t> fork_count;

}  // namespace internal

class ForkWatch {
 public:
  // Belongs to the process that makes it.
  ForkWatch();

  // Relaxed: a child begins with what its one thread saw.
  bool IsForksChild() const {
    return internal::fork_count.load(std::memory_order_relaxed) != count_;
  }

 private:
  uint32_t count_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_FORK_WATCH_H_
