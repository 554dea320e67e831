// SPDX-License-Identifier: Apache-2.0
// A primary whose own medium fails: another one is elected, and what is on that
// medium counts for nothing until it is repaired.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "alpheus/candidate.h"
#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/failing_msync.h"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/test_cluster.h"

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
  // Appends two records. The fence of the second fails.
  static void FailSecondAppend(Log& log) {
    const std::span<const std::byte> text = AsBytes("before");
    const auto before = log.AppendInRing({&text, 1});
    ASSERT_TRUE(before.ok()) << before.status();
    FailMsyncAt(before->payload);
    const auto appended = log.Append("unknown");
    HealMsync();
    EXPECT_TRUE(absl::IsUnavailable(appended.status())) << appended.status();
  }

  TestCluster cluster_{3};
};

// RF4: nodes must not go on hearing it.
TEST_F(CandidateMediumTest, PrimaryWhoseMediumFailedIsReplaced) {
  const auto first = Stand(1);
  std::shared_ptr<Log> log = LogOf(*first);
  const auto second = Stand(2);
  FailSecondAppend(*log);
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
  FailSecondAppend(*log);
  EXPECT_FALSE(candidate->GiveBack(std::move(log)).ok());
  log = LogOf(*candidate);
  EXPECT_THAT(log->report().repairs,
              Contains(HasSubstr("2 records from LSN 1 on")));
  EXPECT_TRUE(log->Append("after").ok());
}

}  // namespace
}  // namespace alpheus::testing
