// SPDX-License-Identifier: Apache-2.0
// instruction_counter: the instructions that a piece of work executes, counted
// one by one.
//
// Idea: the parent steps through a child (ptrace) and looks at each opcode.
// Counters that the code keeps of itself could be wrong; this can't. A locked
// instruction while non-temporal stores are pending drains them, so it counts
// as a fence (P-A1).
//
// Thread safety: one thread, in a process with one thread.
#ifndef ALPHEUS_TESTS_LOG_CORE_RING_INSTRUCTION_COUNTER_H_
#define ALPHEUS_TESTS_LOG_CORE_RING_INSTRUCTION_COUNTER_H_

#include <functional>

#include "absl/status/statusor.h"

namespace alpheus::testing {

// Non-temporal stores of one line.
inline constexpr int kStoresPerLine = 4;

struct InstructionCounts {
  int instructions = 0;
  int locked = 0;
  int fences = 0;  // sfence, mfence, and locked ones with stores pending
  int nt_stores = 0;
  int within_lines = 0;  // others between the stores of one line, at most
  int flushes = 0;
  int system_calls = 0;
};

// Returns whether this process may step through a child.
bool CanCountInstructions();

// Steps through `work` in a child process; `work` runs once before, uncounted,
// so that everything lazy is done. What the counting itself executes is taken
// off. Errors: Internal (the child failed, or could not be stepped through).
absl::StatusOr<InstructionCounts> CountInstructions(
    const std::function<void()>& work);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_LOG_CORE_RING_INSTRUCTION_COUNTER_H_
