// SPDX-License-Identifier: Apache-2.0
// The instructions that an append executes (instruction_counter.h), and how
// many of them count something.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "log/pmem/counters.h"
#include "tests/log/core/ring/instruction_counter.h"

namespace alpheus {
namespace {

using testing::InstructionCounts;
using testing::kStoresPerLine;

class InstructionCountTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "skipped: knows the instructions of x86-64 only";
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(ALPHEUS_SANITIZED)
    GTEST_SKIP() << "skipped: a sanitizer adds instructions of its own";
#endif
    if (!testing::CanCountInstructions())
      GTEST_SKIP() << "skipped: ptrace is not permitted";
    LogOptions options;
    options.anonymous_bytes = 1 << 20;
    options.idle_force_us = 0;
    log_ = *Log::Open(options);
  }

  // Counts what the second append of `bytes` under `force` executes.
  InstructionCounts OfAppend(size_t bytes, const ForceOptions& force = {}) {
    const std::string text(bytes, 'x');
    const absl::StatusOr<InstructionCounts> counts =
        testing::CountInstructions([&] {
          if (!log_->Append(text, force).ok()) _exit(1);
        });
    EXPECT_TRUE(counts.ok()) << counts.status();
    return counts.value_or(InstructionCounts());
  }

  std::unique_ptr<Log> log_;
};

// One locked instruction reserves, one fence persists, and nothing is flushed,
// because every line goes past the cache once.
TEST_F(InstructionCountTest, ForcedAppendTakesOneLockAndOneFence) {
  for (const size_t bytes : {size_t{0}, size_t{16}, size_t{64}, size_t{256},
                             size_t{1000}, size_t{4096}}) {
    const InstructionCounts counts = OfAppend(bytes);
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
    const InstructionCounts counts = OfAppend(bytes, {.frequency = 16});
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

// Appends of a program of append_instructions.cc, by its name for them.
std::map<std::string, std::pair<int, int>> RunAppends(const std::string& path) {
  std::map<std::string, std::pair<int, int>> appends;
  FILE* const output = popen(path.c_str(), "r");
  if (output == nullptr) return appends;
  std::array<char, 64> name{};
  int instructions = 0;
  int locked = 0;
  while (std::fscanf(output, "%63s %d %d", name.data(), &instructions,
                     &locked) == 3) {
    appends[name.data()] = {instructions, locked};
  }
  EXPECT_EQ(pclose(output), 0) << path;
  return appends;
}

// TPC1: the counters cost an append a few instructions, none of them locked.
// Two programs append alike; the other one is compiled from the same sources
// with counters that do nothing (uncounted.h).
TEST_F(InstructionCountTest, CountingTakesFewInstructionsAndNoLock) {
#if !defined(__OPTIMIZE__)
  GTEST_SKIP() << "skipped: without optimisation each counter is a call";
#endif
  constexpr int kCountingMax = 8;
  const auto counted = RunAppends(ALPHEUS_APPEND_INSTRUCTIONS);
  const auto uncounted = RunAppends(ALPHEUS_APPEND_INSTRUCTIONS_UNCOUNTED);
  ASSERT_GE(counted.size(), 12U);
  ASSERT_EQ(counted.size(), uncounted.size());
  int counting = 0;
  for (const auto& [name, append] : counted) {
    ASSERT_TRUE(uncounted.contains(name)) << name;
    const auto& [instructions, locked] = uncounted.at(name);
    EXPECT_LE(append.first - instructions, kCountingMax) << name;
    EXPECT_EQ(append.second, locked) << name;
    counting = std::max(counting, append.first - instructions);
  }
  // The other program does count less.
  EXPECT_GT(counting, 0);
}

}  // namespace
}  // namespace alpheus
