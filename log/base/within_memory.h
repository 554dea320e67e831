// SPDX-License-Identifier: Apache-2.0
// within_memory: turns running out of memory into an error of the work.
//
// Idea: containers throw when the host gives no more memory, or when a claimed
// size is impossible. A process that keeps many logs gives up the work that
// asked for it, and serves the others. This is the one place that catches; its
// callers discard what the work left half done.
//
// Thread safety: as the work.
#ifndef ALPHEUS_LOG_BASE_WITHIN_MEMORY_H_
#define ALPHEUS_LOG_BASE_WITHIN_MEMORY_H_

#include <new>
#include <stdexcept>

#include "absl/status/status.h"

namespace alpheus {

// Runs `work` and returns its result.
// Errors: ResourceExhausted (memory ran out in it).
template <class Work>
absl::Status WithinMemory(const Work& work) {
  // Made in advance: later there may be no memory for it.
  static const absl::Status ran_out = absl::ResourceExhaustedError(
      "memory ran out, and the work that needed it was given up. Give the "
      "process more (ulimit -v, the machine's memory), or less to do");
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ran_out;
  } catch (const std::length_error&) {
    return ran_out;
  }
}

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_WITHIN_MEMORY_H_
