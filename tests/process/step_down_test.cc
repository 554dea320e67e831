// SPDX-License-Identifier: Apache-2.0
// A primary that has its node's replica, and others who open its log while it
// runs and a member is lost (P-A7).
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "tests/process/cluster_fixture.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ClusterWriter;

constexpr int64_t kAWhileNanos = 1'000'000'000;

class StepDownTest : public ClusterTest {
 protected:
  // The primary of node 1, with its replica; node 2 is lost.
  std::unique_ptr<ClusterWriter> PrimaryWithoutASpare() {
    StartCluster();
    Format();
    auto primary = StartWriter({.node = 1, .has_own_replica = true});
    MustReach(primary.get(), 50);
    MustHaveAllInSync(primary.get());
    cluster_->Kill(2);
    MustReach(primary.get(), primary->ack_count() + 50);
    return primary;
  }

  void CheckBoth(ClusterWriter* first, ClusterWriter* next) {
    const auto end = first->RunToEnd(kPatienceNanos);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->exit_status, kUnavailable) << first->said();
    ASSERT_NO_FATAL_FAILURE(MustReach(next, next->ack_count() + 50));
    ASSERT_TRUE(next->Kill().ok());
    ASSERT_TRUE(cluster_->Start(2).ok());
    ASSERT_TRUE(cluster_->AwaitServed("main").ok());
    Append(3, "");
    CheckLog({first, next});
  }
};

TEST_F(StepDownTest, LogIsOpenedFromElsewhereWhileItsPrimaryRuns) {
  const std::unique_ptr<ClusterWriter> first = PrimaryWithoutASpare();
  ASSERT_FALSE(HasFatalFailure());
  const std::unique_ptr<ClusterWriter> next = StartWriter({.node = 3});
  ASSERT_NO_FATAL_FAILURE(MustReach(next.get(), 50));
  CheckBoth(first.get(), next.get());
}

// With the next primary's own replica, too.
TEST_F(StepDownTest, NextPrimaryMayHaveAReplicaOfItsOwn) {
  const std::unique_ptr<ClusterWriter> first = PrimaryWithoutASpare();
  ASSERT_FALSE(HasFatalFailure());
  const std::unique_ptr<ClusterWriter> next =
      StartWriter({.node = 3, .has_own_replica = true});
  ASSERT_NO_FATAL_FAILURE(MustReach(next.get(), 50));
  CheckBoth(first.get(), next.get());
}

// One that is stopped hears of nothing: nobody can do without its replica
// meanwhile, and nothing is lost.
TEST_F(StepDownTest, StoppedPrimaryStepsDownOnceItGoesOn) {
  const std::unique_ptr<ClusterWriter> first = PrimaryWithoutASpare();
  ASSERT_FALSE(HasFatalFailure());
  first->Pause();
  const std::unique_ptr<ClusterWriter> next = StartWriter({.node = 3});
  const auto reached = next->RunUntil(1, kAWhileNanos);
  ASSERT_TRUE(reached.ok()) << reached.status();
  EXPECT_FALSE(*reached);
  EXPECT_FALSE(next->has_ended_output()) << next->said();
  first->Continue();
  ASSERT_NO_FATAL_FAILURE(MustReach(next.get(), 50));
  CheckBoth(first.get(), next.get());
}

}  // namespace
}  // namespace alpheus::testing
