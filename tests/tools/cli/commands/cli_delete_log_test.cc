// SPDX-License-Identifier: Apache-2.0
// `alpheus delete-log`: what it asks for, and what it says of the nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "log/pmem/new_file.h"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::testing::HasSubstr;

class CliDeleteLogTest : public ::testing::Test {
 protected:
  CliDeleteLogTest() {
    RunWell({"format", "--cluster", cluster_.file(), "--size", "256KiB"});
    RunWell({"append", "--cluster", cluster_.file(), "--node", "1"}, "one\n");
  }
  ProgramResult Delete(const std::string& typed, bool yes = false) {
    Arguments arguments = {"delete-log", "--cluster", cluster_.file(), "--log",
                           "main"};
    if (yes) arguments.emplace_back("--yes");
    return RunAlpheus(arguments, typed);
  }

  TestCluster cluster_{3};
};

TEST_F(CliDeleteLogTest, NameIsTypedBeforeALogIsDeleted) {
  const ProgramResult refused = Delete("mian\n");
  EXPECT_EQ(refused.end.exit_status, kUsage) << refused.error;
  EXPECT_THAT(refused.error, HasSubstr("its name was not typed"));
  EXPECT_EQ(RunWell({"cat", "--cluster", cluster_.file()}), "one\n");
  const ProgramResult deleted = Delete("main\n");
  EXPECT_EQ(deleted.end.exit_status, kGood) << deleted.error;
  EXPECT_THAT(deleted.error,
              HasSubstr("main: deleted; its records are removed from nodes 1, "
                        "2, 3\n"));
  const ProgramResult gone =
      RunAlpheus({"append", "--cluster", cluster_.file(), "--node", "1"}, "x");
  EXPECT_EQ(gone.end.exit_status, kFailed);
  EXPECT_THAT(gone.error, HasSubstr("was deleted"));
}

// A folder is in the way of each file that is to come.
TEST_F(CliDeleteLogTest, NodesThatKeepTheirRecordsAreNamed) {
  const auto in_the_way = [this](int node) {
    return NewFile::WorkingName(
        std::filesystem::canonical(cluster_.ReplicaPath(node)).string());
  };
  for (const int node : {2, 3}) {
    ASSERT_TRUE(std::filesystem::create_directory(in_the_way(node)));
  }
  EXPECT_THAT(Delete("", /*yes=*/true).error,
              HasSubstr("main: deleted; its records are removed from node 1, "
                        "and not from nodes 2, 3: "));
  for (const int node : {2, 3}) {
    ASSERT_TRUE(std::filesystem::remove(in_the_way(node)));
  }
  EXPECT_THAT(Delete("", /*yes=*/true).error,
              HasSubstr("removed from nodes 1, 2, 3\n"));
}

}  // namespace
}  // namespace alpheus::testing
