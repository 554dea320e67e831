// SPDX-License-Identifier: Apache-2.0
// The instructions that an append executes, counted one by one: the parent
// steps through a child (ptrace) and looks at each opcode. Counters that the
// code keeps of itself could be wrong; this can't. A locked instruction while
// non-temporal stores are pending drains them, so it counts as a fence (P-A1).
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "alpheus/log.h"
#include "log/pmem/counters.h"

namespace alpheus {
namespace {

constexpr int kStoresPerLine = 4;

struct Counts {
  int instructions = 0;
  int locked = 0;
  int fences = 0;  // sfence, mfence, and locked ones with stores pending
  int nt_stores = 0;
  int within_lines = 0;  // others between the stores of one line, at most
  int flushes = 0;
  int system_calls = 0;
};

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

  const Counts& counts() const { return counts_; }

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

  Counts counts_;
  int last_store_ = 0;
  bool pending_ = false;
};

// Steps through `work` in a child process; `work` runs once before, uncounted,
// so that everything lazy is done. Fails the test if the child does.
Counts CountInstructions(const std::function<void()>& work) {
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
    ADD_FAILURE() << "the child did not stop: " << status;
    return {};
  }
  for (;;) {
    user_regs_struct registers{};
    ptrace(PTRACE_GETREGS, child, nullptr, &registers);
    std::array<uint8_t, 15> code{};
    const iovec to{code.data(), code.size()};
    const iovec from{reinterpret_cast<void*>(registers.rip), code.size()};
    if (process_vm_readv(child, &to, 1, &from, 1, 0) < 3) {
      ADD_FAILURE() << "no code at " << registers.rip;
      break;
    }
    ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) break;
    tally.Add(code);
  }
  EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP) << status;
  ptrace(PTRACE_CONT, child, nullptr, nullptr);
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return tally.counts();
}

class InstructionCountTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "skipped: knows the instructions of x86-64 only";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(ALPHEUS_SANITIZED)
    GTEST_SKIP() << "skipped: a sanitizer adds instructions of its own";
#endif
    if (!TracingWorks()) GTEST_SKIP() << "skipped: ptrace is not permitted";
    LogOptions options;
    options.anonymous_bytes = 1 << 20;
    options.idle_force_us = 0;
    log_ = *Log::Open(options);
  }

  static bool TracingWorks() {
    const pid_t child = fork();
    if (child == 0) {
      _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  // Counts what the second append of `bytes` under `force` executes. The two
  // raise() calls around it are the same for every work, so an empty one is
  // taken off.
  Counts OfAppend(size_t bytes, const ForceOptions& force = {}) {
    const std::string text(bytes, 'x');
    const Counts frame = CountInstructions([] {});
    Counts counts = CountInstructions([&] {
      if (!log_->Append(text, force).ok()) _exit(1);
    });
    counts.instructions -= frame.instructions;
    counts.locked -= frame.locked;
    counts.system_calls -= frame.system_calls;
    return counts;
  }

  std::unique_ptr<Log> log_;
};

// One locked instruction reserves, one fence persists, and nothing is flushed,
// because every line goes past the cache once.
TEST_F(InstructionCountTest, ForcedAppendTakesOneLockAndOneFence) {
  for (const size_t bytes : {size_t{0}, size_t{16}, size_t{64}, size_t{256},
                             size_t{1000}, size_t{4096}}) {
    const Counts counts = OfAppend(bytes);
    EXPECT_EQ(counts.locked, 1) << bytes;
    EXPECT_EQ(counts.fences, 1) << bytes;
    EXPECT_EQ(counts.flushes, 0) << bytes;
    EXPECT_EQ(counts.system_calls, 0) << bytes;
    // The record's lines and the watermark's.
    const int lines = static_cast<int>((48 + bytes + 63) / 64) + 1;
    EXPECT_EQ(counts.nt_stores, kStoresPerLine * lines) << bytes;
  }
}

// A pause between the quarters of a line makes the fence slow on some
// processors (LibpmemPersistence::StoreQuarters).
TEST_F(InstructionCountTest, LinesAreStoredInOneGo) {
#if !defined(__OPTIMIZE__)
  GTEST_SKIP()
      << "skipped: without optimisation each value goes through memory";
#endif
  for (const size_t bytes : {size_t{0}, size_t{16}, size_t{40}, size_t{64},
                             size_t{80}, size_t{256}, size_t{1000}}) {
    EXPECT_LE(OfAppend(bytes).within_lines, 1) << bytes;
  }
}

TEST_F(InstructionCountTest, UnforcedAppendTakesOneLockAndNoFence) {
  for (const size_t bytes : {size_t{0}, size_t{64}, size_t{700}}) {
    // LSN 1 comes before the count, LSN 2 in it.
    const Counts counts = OfAppend(bytes, {.frequency = 16});
    EXPECT_EQ(counts.locked, 1) << bytes;
    EXPECT_EQ(counts.fences, 0) << bytes;
    EXPECT_EQ(counts.flushes, 0) << bytes;
    EXPECT_EQ(counts.nt_stores, 0) << bytes;
    EXPECT_EQ(counts.system_calls, 0) << bytes;
  }
}

// A payload is copied once, from the caller's bytes to the medium.
TEST_F(InstructionCountTest, ForcedAppendCopiesNothingThroughTheCache) {
  const std::string text(1000, 'x');
  const PersistenceCounters before = ThreadPersistenceCounters();
  ASSERT_TRUE(log_->Append(text).ok());
  EXPECT_EQ(ThreadPersistenceCounters().copied_bytes, before.copied_bytes);
  // Under a policy it is copied once, with 32 bytes of header.
  ASSERT_TRUE(log_->Append(text.substr(0, 100), {.frequency = 16}).ok());
  EXPECT_EQ(ThreadPersistenceCounters().copied_bytes - before.copied_bytes,
            100u + 32);
}

}  // namespace
}  // namespace alpheus
