// SPDX-License-Identifier: Apache-2.0
// Three nodes, and a program at each that stands for primary. The primary is
// killed, stopped, drained, and another one goes on; nothing that was
// acknowledged is lost, doubled or moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/process/cluster_fixture.h"
#include "tests/process/fail_over_fixture.h"
#include "tools/nemesis/cluster_writer.h"

namespace alpheus::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ProgramFailOverTest, KilledPrimaryIsReplacedAgainAndAgain) {
  Begin();
  demo::ClusterWriter* primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  for (int round = 0; round < 5; ++round) {
    const int node = primary->plan().node;
    Kill(primary);
    demo::ClusterWriter* const next = Next(primary);
    ASSERT_NE(next, nullptr);
    Stand(node, {"--silence-ms", "5000"});
    primary = next;
  }
  CheckAll();
}

// It finds its log failed, and waits again.
TEST_F(ProgramFailOverTest, StoppedPrimaryIsReplacedAndComesBack) {
  Begin({"--silence-ms", "1000"});
  demo::ClusterWriter* const primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  primary->Pause();
  demo::ClusterWriter* const next = Next(primary);
  ASSERT_NE(next, nullptr);
  primary->Continue();
  ASSERT_TRUE(Eventually([&] {
    return primary->said().find("is no longer primary") != std::string::npos;
  })) << Said();
  // Elected, it goes on.
  RunWell("elect", {"--log", "main", "--timeout", PatienceSeconds(),
                    absl::StrCat(primary->plan().node)});
  EXPECT_EQ(Next(next), primary) << Said();
  CheckAll();
}

TEST_F(ProgramFailOverTest, DrainedPrimaryHandsOverWithoutAnUnknownOutcome) {
  Begin({"--silence-ms", "20000"});
  demo::ClusterWriter* const primary = Next(nullptr);
  ASSERT_NE(primary, nullptr);
  const std::string said =
      RunWell("drain", {"--log", "main", "--timeout", PatienceSeconds(),
                        absl::StrCat(primary->plan().node)});
  EXPECT_THAT(said, HasSubstr(" is primary, in epoch "));
  ASSERT_NE(Next(primary), nullptr);
  EXPECT_EQ(primary->said().find("unknown outcome"), std::string::npos)
      << Said();
  CheckAll();
}

TEST_F(ProgramFailOverTest, PriorityDecidesAmongEquals) {
  StartCluster();
  MakeLog();
  demo::ClusterWriter& third =
      Stand(3, {"--priority", "5", "--silence-ms", "5000"});
  ASSERT_EQ(Next(nullptr), &third);
  demo::ClusterWriter& first =
      Stand(1, {"--priority", "1", "--silence-ms", "5000"});
  demo::ClusterWriter& second =
      Stand(2, {"--priority", "9", "--silence-ms", "5000"});
  ASSERT_TRUE(Eventually([&] {
    return first.HasSaidThatItStands() && second.HasSaidThatItStands();
  })) << Said();
  // All are as fresh.
  ASSERT_TRUE(Eventually([&] {
    return std::ranges::all_of(Status(), [](const nlohmann::json& replica) {
      return replica.value("in_sync", false);
    });
  })) << Said();
  Kill(&third);
  EXPECT_EQ(Next(nullptr), &second) << Said();
  CheckAll();
}

TEST_F(ProgramFailOverTest, NobodyIsElectedWhereNobodyStands) {
  StartCluster();
  Format("main", "4MiB");
  const demo::ProgramResult nobody =
      Run("elect", {"--log", "main", "--timeout", "15", "2"});
  EXPECT_EQ(nobody.end.exit_status, kFailed);
  EXPECT_THAT(nobody.error, HasSubstr("nobody stands for primary at node 2"));
}

}  // namespace
}  // namespace alpheus::testing
