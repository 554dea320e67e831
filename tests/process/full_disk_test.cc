// SPDX-License-Identifier: Apache-2.0
// A node whose disk is too small for a new log.
//
// The disk is a small file system in memory that only this node sees: it is
// mounted in a namespace of the node's process, and goes with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/process/cluster_fixture.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::testing::HasSubstr;

constexpr char kMountScript[] =
    "mount -t tmpfs -o size=1m none \"$0\" && exec \"$@\"";

std::vector<std::string> SmallDisk(const std::string& directory) {
  return {"/usr/bin/unshare", "--user", "--map-root-user", "--mount",
          "/bin/sh",          "-c",     kMountScript,      directory};
}

class FullDiskTest : public ClusterTest {
 protected:
  void SetUp() override {
    Program trial;
    trial.argv = SmallDisk(directory_.path());
    trial.argv.emplace_back("/bin/true");
    const auto result = demo::RunProgram(trial);
    if (!result.ok() || result->end.exit_status != 0) {
      GTEST_SKIP() << "skipped because no file system can be mounted here: "
                   << (result.ok() ? result->error
                                   : std::string(result.status().message()));
    }
    demo::ClusterOptions options = ThreeNodes(directory_.path());
    options.wrappers = {{3, SmallDisk(directory_.File("node-3"))}};
    ASSERT_NO_FATAL_FAILURE(StartCluster(options));
  }
};

TEST_F(FullDiskTest, LogThatDoesNotFitOneNodeIsRefusedAndASmallerOneFits) {
  const ProgramResult result =
      Run("format", {"--log", "large", "--size", "4MiB"});
  EXPECT_NE(result.end.exit_status, kGood);
  EXPECT_THAT(result.error, HasSubstr("No space"));
  EXPECT_THAT(result.error, HasSubstr("node 3"));
  Format("small", "256KiB");
  Append(1, CountLines(10), "small");
  EXPECT_EQ(Cat("small"), CountLines(10));
  for (int node = 1; node <= 3; ++node) EXPECT_TRUE(IsServed(node, "small"));
}

// A file that could not be made must not be taken for a replica later.
TEST_F(FullDiskTest, NodeStartsAgainAfterItsDiskWasFull) {
  Run("format", {"--log", "large", "--size", "4MiB"});
  cluster_->Kill(3);
  const absl::Status started = cluster_->Start(3);
  ASSERT_TRUE(started.ok()) << started;
  Format("small", "256KiB");
  Append(3, CountLines(10), "small");
  EXPECT_EQ(Cat("small"), CountLines(10));
}

}  // namespace
}  // namespace alpheus::testing
