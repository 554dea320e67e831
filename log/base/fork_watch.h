// SPDX-License-Identifier: Apache-2.0
// fork_watch: tells whether this process is a fork's child of the original one.
//
// Idea: a child has a copy of its parent's objects, and none of its threads. It
// shares resources such as a mapped file and its lock. So objects that are made
// for one process ask this before they act. Each fork counts in the child, by a
// handler of the C library; asking is one load and a comparison. Children by
// posix_spawn or vfork have no copy, and clone(2) is not noticed.
//
// Thread safety: all members concurrently.
// References: pthread_atfork(3).
#ifndef ALPHEUS_LOG_BASE_FORK_WATCH_H_
#define ALPHEUS_LOG_BASE_FORK_WATCH_H_

#include <atomic>
#include <cstdint>

namespace alpheus {

namespace internal {

// Number of forks from the process that made the first watch down to this one.
extern std::atomic<uint32_t> fork_count;

}  // namespace internal

class ForkWatch {
 public:
  // Belongs to the process that makes it.
  ForkWatch();

  // Returns whether this is a fork's child. Relaxed: a child starts with the
  // values that its one thread saw.
  bool IsForksChild() const {
    return internal::fork_count.load(std::memory_order_relaxed) != count_;
  }

 private:
  uint32_t count_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_FORK_WATCH_H_
