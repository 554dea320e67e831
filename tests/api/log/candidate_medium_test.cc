// SPDX-License-Identifier: Apache-2.0
// A primary whose own medium fails: another one is elected, and what is on that
// medium counts for nothing until it is repaired.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

namespace {

// Fences of the thread itself; nodes have others.
thread_local bool msync_fails = false;

}  // namespace

// In the place of libpmem's, for all of this program: the region's pages.
// NOLINTNEXTLINE(readability-identifier-naming): libpmem's name
extern "C" int pmem_msync(const void* address, size_t bytes) {
  if (msync_fails) {
    errno = EIO;
    return -1;
  }
  constexpr uintptr_t kPageMask = 4095;
  const uintptr_t start = reinterpret_cast<uintptr_t>(address) & ~kPageMask;
  const uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as libpmem does it.
  return msync(reinterpret_cast<void*>(start), end - start, MS_SYNC);
}

namespace alpheus::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class CandidateMediumTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FormatOptions format;
    format.cluster_file = cluster_.file();
    format.region_bytes = 256 * 1024;
    ASSERT_TRUE(Log::Format(format).ok());
  }
  std::unique_ptr<Candidate> Stand(int node) {
    CandidateOptions options;
    options.log.replication.cluster_file = cluster_.file();
    options.log.replication.node = static_cast<uint64_t>(node);
    options.log.path = cluster_.ReplicaPath(node);
    options.log.replication.open_timeout_ms = 60'000;
    options.log.replication.ack_timeout_ms = 60'000;
    auto candidate = Candidate::Stand(options);
    EXPECT_TRUE(candidate.ok()) << candidate.status();
    return *std::move(candidate);
  }
  static std::shared_ptr<Log> LogOf(Candidate& candidate) {
    auto log = candidate.WaitForLog(InPatience());
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  // The fence of this append fails.
  static void FailAppend(Log& log) {
    msync_fails = true;
    const auto appended = log.Append("unknown");
    msync_fails = false;
    EXPECT_TRUE(absl::IsUnavailable(appended.status())) << appended.status();
  }

  TestCluster cluster_{3};
};

// RF4: nodes must not go on hearing it.
TEST_F(CandidateMediumTest, PrimaryWhoseMediumFailedIsReplaced) {
  const auto first = Stand(1);
  std::shared_ptr<Log> log = LogOf(*first);
  ASSERT_TRUE(log->Append("before").ok());
  const auto second = Stand(2);
  FailAppend(*log);
  EXPECT_TRUE(absl::IsAborted(first->WaitToGiveBack(InPatience())));
  EXPECT_TRUE(log->replication_status().has_failed);
  // Its program still has it.
  const std::shared_ptr<Log> next = LogOf(*second);
  EXPECT_TRUE(next->Append("after").ok());
  EXPECT_FALSE(first->GiveBack(std::move(log)).ok());
}

// P-A8: a later msync returns OK, whatever became of the pages.
TEST_F(CandidateMediumTest, ReplicaWhoseMediumFailedIsRepaired) {
  const auto candidate = Stand(1);
  std::shared_ptr<Log> log = LogOf(*candidate);
  ASSERT_TRUE(log->Append("before").ok());
  FailAppend(*log);
  EXPECT_FALSE(candidate->GiveBack(std::move(log)).ok());
  log = LogOf(*candidate);
  EXPECT_THAT(log->report().repairs,
              Contains(HasSubstr("2 records from LSN 1 on")));
  EXPECT_TRUE(log->Append("after").ok());
}

}  // namespace
}  // namespace alpheus::testing
