// SPDX-License-Identifier: Apache-2.0
// Orders that a node carries out for an operator, over TCP, with its nodes'
// files. The tests of the calls behind have more.
#include "api/admin/administrator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "alpheus/log.h"
#include "log/base/bytes.h"
#include "quorum/cluster/cluster_file.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace alpheus {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TestCluster;

class AdministratorTest : public ::testing::Test {
 protected:
  void CreateMain() {
    const auto made =
        administrator_.CreateLog("main", 256 * 1024, {.timeout_ms = 60'000});
    ASSERT_TRUE(made.ok()) << made.status();
  }
  void AppendOne() {
    LogOptions options;
    options.replication.cluster_file = cluster_.file();
    options.replication.node = 1;
    options.replication.open_timeout_ms = 60'000;
    options.replication.ack_timeout_ms = 60'000;
    const auto log = Log::Open(options);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Append("one").ok());
    ASSERT_TRUE((*log)->Close().ok());
  }
  // A list with these nodes, as the text of its file.
  std::string TextOf(int configuration_id, const std::vector<int>& nodes) {
    const auto bytes = testing::ReadFile(
        cluster_.WriteList(configuration_id, nodes, /*write_quorum=*/2));
    return std::string(AsText(bytes));
  }

  TestCluster cluster_{4, 3};
  ClusterAdministrator administrator_{cluster_.file(), 2};
  const OrderBounds bounds_ = {.timeout_ms = 60'000};
};

TEST_F(AdministratorTest, MakesALogOnce) {
  EXPECT_EQ(administrator_.node(), 2u);
  CreateMain();
  AppendOne();
  const auto again = administrator_.CreateLog("main", 256 * 1024, bounds_);
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  const auto bad = administrator_.CreateLog("not a name", 256 * 1024, bounds_);
  EXPECT_TRUE(absl::IsInvalidArgument(bad.status())) << bad.status();
  const auto small = administrator_.CreateLog("small", 4096, bounds_);
  EXPECT_TRUE(absl::IsInvalidArgument(small.status())) << small.status();
}

TEST_F(AdministratorTest, ScrubsAllReplicasOrOne) {
  CreateMain();
  AppendOne();
  const auto all = administrator_.Scrub("main", 0, bounds_);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 4u);
  for (const ScrubResult& one : *all) {
    EXPECT_TRUE(one.status.ok()) << one.status;
    EXPECT_EQ(one.said.pass.records, 1u);
  }
  const auto one = administrator_.Scrub("main", 3, bounds_);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ(one->front().node, 3u);
  EXPECT_TRUE(
      absl::IsNotFound(administrator_.Scrub("main", 9, bounds_).status()));
  OrderBounds left = bounds_;
  left.gives_up = [] { return true; };
  const auto none = administrator_.Scrub("main", 3, left);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(absl::IsCancelled(none->front().status));
  const auto late = administrator_.Scrub("main", 3, {.timeout_ms = 0});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_FALSE(late->front().status.ok());
}

TEST_F(AdministratorTest, ReplacesALostReplica) {
  CreateMain();
  AppendOne();
  const auto nothing = administrator_.Replace("main", {}, bounds_);
  EXPECT_TRUE(absl::IsInvalidArgument(nothing.status())) << nothing.status();
  const auto kept = administrator_.Replace("main", {3}, bounds_);
  EXPECT_TRUE(absl::IsFailedPrecondition(kept.status())) << kept.status();
  cluster_.Stop(3);
  ASSERT_TRUE(std::filesystem::remove(cluster_.ReplicaPath(3)));
  cluster_.Start(3);
  const auto replaced = administrator_.Replace("main", {3}, bounds_);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(replaced->end_lsn, Lsn(1));
  EXPECT_THAT(replaced->absent_members, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(cluster_.ReplicaPath(3)));
}

TEST_F(AdministratorTest, ChangesTheListToThatOfAText) {
  CreateMain();
  AppendOne();
  const auto changed =
      administrator_.Reconfigure("main", TextOf(2, {1, 2, 3}), bounds_);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->end_lsn, Lsn(1));
  // The node has the list of before: the log has a later one by now.
  const auto older =
      administrator_.Reconfigure("main", TextOf(3, {2, 3, 4}), bounds_);
  EXPECT_TRUE(absl::IsFailedPrecondition(older.status())) << older.status();
}

TEST_F(AdministratorTest, TextThatIsNoListIsRefusedWithItsPlace) {
  CreateMain();
  const auto refused = [this](const std::string& text) {
    const auto changed = administrator_.Reconfigure("main", text, bounds_);
    EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << changed.status();
    return std::string(changed.status().message());
  };
  EXPECT_THAT(refused("configuration_id = \"two"),
              HasSubstr("(the new list):1:"));
  EXPECT_THAT(refused(std::string(quorum::kClusterFileBytesMax + 1, ' ')),
              HasSubstr("no cluster file has more"));
  // The same list.
  EXPECT_THAT(refused(TextOf(1, {1, 2, 3, 4})), HasSubstr("onfiguration"));
}

// A caller could have the node read any file, and see some of it.
TEST_F(AdministratorTest, TextNamesNoOtherFilesThanTheNodesOwn) {
  CreateMain();
  const std::string text = absl::StrReplaceAll(
      TextOf(2, {1, 2, 3}), {{cluster_.key_file(), "/etc/passwd"}});
  ASSERT_THAT(text, HasSubstr("/etc/passwd"));
  const auto changed = administrator_.Reconfigure("main", text, bounds_);
  EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << changed.status();
  EXPECT_THAT(std::string(changed.status().message()), HasSubstr("key_file"));
}

// The node would show its identity, a password, to servers of the caller's.
TEST_F(AdministratorTest, TextNamesNoOtherServersOfZooKeeper) {
  CreateMain();
  const auto refused = [this](const std::string& text) {
    const auto changed = administrator_.Reconfigure("main", text, bounds_);
    EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << changed.status();
    EXPECT_THAT(std::string(changed.status().message()),
                AllOf(HasSubstr("[zookeeper] is not as in this node's list"),
                      HasSubstr("Nothing was changed")));
  };
  const auto with = [](const std::string& list, const std::string& server) {
    return absl::StrCat("membership = \"zookeeper\"\n", list,
                        "[zookeeper]\nservers = [\"", server, "\"]\n");
  };
  const std::string later = TextOf(2, {1, 2, 3});
  refused(with(later, "127.0.0.1:1"));
  const std::string own = TextOf(1, {1, 2, 3, 4});
  std::ofstream(cluster_.file()) << with(own, "127.0.0.1:1");
  refused(with(later, "127.0.0.1:2"));
  refused(later);
}

TEST_F(AdministratorTest, TextAsksForAKeyAsTheNodesListDoes) {
  CreateMain();
  const std::string text = absl::StrReplaceAll(
      TextOf(2, {1, 2, 3}),
      {{absl::StrCat("key_file = \"", cluster_.key_file(), "\"\n"), ""}});
  const auto changed = administrator_.Reconfigure(
      "main", absl::StrCat("insecure_without_key = true\n", text), bounds_);
  EXPECT_TRUE(absl::IsInvalidArgument(changed.status())) << changed.status();
  EXPECT_THAT(std::string(changed.status().message()), HasSubstr("key_file"));
  // The node's list has neither key nor leave to go without.
  const std::string key_line =
      absl::StrCat("key_file = \"", cluster_.key_file(), "\"\n");
  std::ofstream(cluster_.file())
      << absl::StrReplaceAll(TextOf(1, {1, 2, 3, 4}), {{key_line, ""}});
  const auto open = administrator_.Reconfigure(
      "main", absl::StrCat("insecure_without_key = true\n", text), bounds_);
  EXPECT_TRUE(absl::IsInvalidArgument(open.status())) << open.status();
  EXPECT_THAT(std::string(open.status().message()),
              HasSubstr("insecure_without_key is not as in"));
}

// Nobody stands.
TEST_F(AdministratorTest, ElectionsNeedSomebodyThatStands) {
  CreateMain();
  const OrderBounds soon = {.timeout_ms = 15'000};
  const auto elected = administrator_.Elect("main", 2, soon);
  EXPECT_TRUE(absl::IsFailedPrecondition(elected.status())) << elected.status();
  const auto drained = administrator_.Drain("main", 2, soon);
  EXPECT_TRUE(absl::IsFailedPrecondition(drained.status())) << drained.status();
  const auto stranger = administrator_.Elect("main", 9, soon);
  EXPECT_TRUE(absl::IsInvalidArgument(stranger.status())) << stranger.status();
}

}  // namespace
}  // namespace alpheus
