// SPDX-License-Identifier: Apache-2.0
#include "tests/log/core/ring/instruction_counter.h"

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::testing {
namespace {

// Adds one instruction, from its first bytes.
class Tally {
 public:
  void Add(const std::array<uint8_t, 15>& code) {
    ++counts_.instructions;
    bool locked = false;
    size_t at = 0;
    bool rep = false;
    for (bool more = true; more;) {
      switch (code[at]) {
        case 0xf0:
          locked = true;
          ++at;
          break;
        case 0xf3:
          rep = true;
          ++at;
          break;
        case 0x66:
        case 0xf2:
        case 0x2e:
        case 0x64:
        case 0x65:
          ++at;
          break;
        default:
          more = false;
      }
    }
    if ((code[at] & 0xf0) == 0x40) ++at;  // REX
    const uint8_t opcode = code[at];
    const uint8_t second = code[at + 1];
    const uint8_t modrm = code[at + 2];
    // xchg with memory locks by itself.
    locked |= (opcode == 0x86 || opcode == 0x87) && second < 0xc0;
    if (locked) {
      ++counts_.locked;
      if (pending_) Fence();
    }
    // vmovnt* of AVX (0xc5, 0xc4 or 0x62 ... 0xe7 or 0x2b): none is compiled
    // in.
    if (opcode != 0x0f) return;
    if (second == 0x05) ++counts_.system_calls;
    // movntdq, movntps, movnti
    if (second == 0xe7 || second == 0x2b || second == 0xc3) {
      NoteLineStore();
      ++counts_.nt_stores;
      pending_ = true;
    }
    if (second == 0xae && modrm >= 0xc0 && !rep) Fence();  // m/s/lfence
    // clflush, clflushopt (/7), clwb (66 /6)
    if (second == 0xae && modrm < 0xc0 && (modrm >> 3 & 7) >= 6) {
      ++counts_.flushes;
    }
  }

  const InstructionCounts& counts() const { return counts_; }

 private:
  void Fence() {
    ++counts_.fences;
    pending_ = false;
  }
  void NoteLineStore() {
    const int others = counts_.instructions - last_store_ - 1;
    if (counts_.nt_stores % kStoresPerLine != 0) {
      counts_.within_lines = std::max(counts_.within_lines, others);
    }
    last_store_ = counts_.instructions;
  }

  InstructionCounts counts_;
  int last_store_ = 0;
  bool pending_ = false;
};

absl::StatusOr<InstructionCounts> StepThrough(
    const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    // Stops twice: where counting starts, and where it ends.
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(2);
    work();
    raise(SIGSTOP);
    work();
    raise(SIGSTOP);
    _exit(0);
  }
  Tally tally;
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) {
    return absl::InternalError(
        absl::StrCat("the child did not stop: ", status));
  }
  for (;;) {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, child, nullptr, &registers);
    std::array<uint8_t, 15> code{};
    const iovec to{code.data(), code.size()};
    const iovec from{reinterpret_cast<void*>(registers.rip), code.size()};
    if (process_vm_readv(child, &to, 1, &from, 1, 0) < 3) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return absl::InternalError(absl::StrCat("no code at ", registers.rip));
    }
    ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    tally.Add(code);
  }
  if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGSTOP) {
    return absl::InternalError(absl::StrCat("the work failed: ", status));
  }
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat("the child failed: ", status));
  }
  return tally.counts();
}

}  // namespace

bool CanCountInstructions() {
  const pid_t child = fork();
  if (child == 0) {
    _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

absl::StatusOr<InstructionCounts> CountInstructions(
    const std::function<void()>& work) {
  // The two raise() calls around the work are the same for every work, so an
  // empty one is taken off.
  ALPHEUS_ASSIGN_OR_RETURN(const InstructionCounts frame, StepThrough([] {}));
  ALPHEUS_ASSIGN_OR_RETURN(InstructionCounts counts, StepThrough(work));
  counts.instructions -= frame.instructions;
  counts.locked -= frame.locked;
  counts.system_calls -= frame.system_calls;
  return counts;
}

}  // namespace alpheus::testing
