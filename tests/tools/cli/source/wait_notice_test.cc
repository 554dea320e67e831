// SPDX-License-Identifier: Apache-2.0
// The notice of a command that waits.
#include "tools/cli/source/wait_notice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/fabrics/silent_node.h"
#include "tests/support/fixtures/test_cluster.h"
#include "tests/tools/cli/cli_fixture.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Goal: a command that waits says for whom and until when.
TEST(WaitNoticeTest, WaitNamesTheNodesAndItsEnd) {
  TestCluster cluster(3);
  RunWell({"format", "--cluster", cluster.file(), "--size", "256KiB"});
  cli::LogSource source;
  source.cluster = cluster.file();
  EXPECT_THAT(cli::DescribeWait(source, "it gives up after 60 s (--timeout)"),
              AllOf(HasSubstr("log main: waiting for its nodes, all of which "
                              "answer; it gives up after 60 s (--timeout)")));
  cluster.Stop(3);
  SilentNode silent(cluster.AddressOf(3));
  EXPECT_THAT(cli::DescribeWait(source, "it gives up"),
              AllOf(HasSubstr("waiting for node 3 ("), HasSubstr("silent for"),
                    Not(HasSubstr("node 1"))));
  cluster.Stop(1);
  cluster.Stop(2);
  EXPECT_THAT(cli::DescribeWait(source, "it gives up"),
              HasSubstr("waiting for node"));

  ::testing::internal::CaptureStderr();
  {
    const cli::WaitNotice notice(source, "never", std::chrono::hours(1));
    cli::LogSource local;
    local.file = "wal";
    const cli::WaitNotice none(local, "never", std::chrono::seconds(0));
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace alpheus::testing
