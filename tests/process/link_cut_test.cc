// SPDX-License-Identifier: Apache-2.0
// Links between a primary and its backups that are cut, without a word to
// either end (P-A3.3, P-A3.6).
//
// The primary, without a replica, has a cluster file of its own, in which each
// backup's address is a proxy's.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/process/cluster_fixture.h"
#include "tools/nemesis/links/cutting_proxy.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ClusterWriter;
using ::alpheus::demo::ClusterWriterPlan;
using ::alpheus::demo::CuttingProxy;

class LinkCutTest : public ClusterTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartCluster());
    Format();
    std::vector<std::string> addresses;
    for (int node = 1; node <= cluster_->node_count(); ++node) {
      auto proxy = CuttingProxy::Start(cluster_->address(node));
      ASSERT_TRUE(proxy.ok()) << proxy.status();
      links_.push_back(*std::move(proxy));
      addresses.push_back(links_.back()->address());
    }
    plan_.cluster_file = directory_.File("linked.toml");
    const absl::Status written = cluster_->WriteFile(
        plan_.cluster_file, addresses, cluster_->zookeeper());
    ASSERT_TRUE(written.ok()) << written;
  }

  ClusterWriterPlan plan_;
  std::vector<std::unique_ptr<CuttingProxy>> links_;  // to node i + 1
};

TEST_F(LinkCutTest, PrimaryThatLosesOneLinkGoesOn) {
  const std::unique_ptr<ClusterWriter> primary = StartWriter(plan_);
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 50));
  ASSERT_NO_FATAL_FAILURE(MustHaveAllInSync(primary.get()));
  links_[2]->Cut();
  const uint64_t before = links_[2]->passed_bytes();
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), primary->ack_count() + 300));
  EXPECT_EQ(links_[2]->passed_bytes(), before);
  ASSERT_TRUE(primary->Kill().ok());
  Append(2, "");
  CheckLog({primary.get()});
}

TEST_F(LinkCutTest, PrimaryThatLosesTwoLinksFailsWithUnknownOutcome) {
  const std::unique_ptr<ClusterWriter> primary = StartWriter(plan_);
  ASSERT_NO_FATAL_FAILURE(MustReach(primary.get(), 50));
  links_[1]->Cut();
  links_[2]->Cut();
  const auto end = primary->RunToEnd(kPatienceNanos);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_status, kUnavailable) << primary->said();
  Append(2, "");
  CheckLog({primary.get()});
}

// Bytes that arrive late, when the link is healed, must not come through.
TEST_F(LinkCutTest, HealedLinkCarriesNothingOfTheOldEpochIntoTheNew) {
  const std::unique_ptr<ClusterWriter> old_primary = StartWriter(plan_);
  ASSERT_NO_FATAL_FAILURE(MustReach(old_primary.get(), 50));
  links_[1]->Cut();
  links_[2]->Cut();
  const std::unique_ptr<ClusterWriter> new_primary = StartWriter({.node = 2});
  ASSERT_NO_FATAL_FAILURE(MustReach(new_primary.get(), 50));
  links_[1]->Heal();
  links_[2]->Heal();
  const auto end = old_primary->RunToEnd(kPatienceNanos);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_NE(end->exit_status, kGood) << old_primary->said();
  ASSERT_NO_FATAL_FAILURE(
      MustReach(new_primary.get(), new_primary->ack_count() + 100));
  ASSERT_TRUE(new_primary->Kill().ok());
  Append(3, "");
  CheckLog({old_primary.get(), new_primary.get()});
}

TEST_F(LinkCutTest, NoLogIsOpenedOverOneLink) {
  links_[0]->Cut();
  links_[1]->Cut();
  const std::unique_ptr<ClusterWriter> primary = StartWriter(plan_);
  const auto end = primary->RunToEnd(kPatienceNanos);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->exit_status, kUnavailable) << primary->said();
  EXPECT_EQ(primary->ack_count(), 0u);
}

}  // namespace
}  // namespace alpheus::testing
