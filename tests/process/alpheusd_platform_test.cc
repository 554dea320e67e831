// SPDX-License-Identifier: Apache-2.0
// A node's platform as its operator declares it, on the command line and in the
// node's configuration; and the node's words about its key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "log/pmem/libpmem_persistence.h"
#include "quorum/members/cluster_key.h"
#include "replication/fabric/tcp/socket.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The lines that a node wrote, without the first word of each.
std::string WithoutTimes(const std::string& said) {
  std::istringstream lines(said);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    text += line.substr(std::min(line.find(' '), line.size())) + "\n";
  }
  return text;
}

class AlpheusdPlatformTest : public ::testing::Test {
 protected:
  AlpheusdPlatformTest() {
    std::ofstream(cluster_)
        << "cluster_id = \"9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a\"\n"
           "[[member]]\nnode = 1\naddress = \"127.0.0.1:1\"\n";
  }

  void SetUp() override { ASSERT_TRUE(taken_.ok()) << taken_.status(); }

  // Nodes whose address is taken say what they are, and end.
  demo::ProgramResult Run(std::vector<std::string> arguments) {
    std::vector<std::string> argv = {
        ALPHEUSD_BINARY, "--cluster",       cluster_,   "--node",       "1",
        "--directory",   directory_.path(), "--listen", taken_->address};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    auto result = demo::RunProgram({argv, {}});
    if (result.ok()) return *std::move(result);
    ADD_FAILURE() << result.status();
    return {};
  }

  std::string WriteConfig(const std::string& text) {
    const std::string path = directory_.File("alpheusd.toml");
    std::ofstream(path) << text;
    return path;
  }

  const TempDirectory directory_;
  const std::string cluster_ = directory_.File("cluster.toml");
  const absl::StatusOr<fabric::tcp::Listener> taken_ =
      fabric::tcp::ListenOn("127.0.0.1:0");
};

TEST_F(AlpheusdPlatformTest, NodeSaysHowItsRecordsArePersisted) {
  EXPECT_THAT(Run({}).error,
              HasSubstr("platform dmp,ddio,dram,tcp; a record: rq:writeimm(a);"
                        "rsp:receive(&a);rsp:flush(&a)"));
  EXPECT_THAT(Run({"--platform", "mhp,pm"}).error,
              HasSubstr("platform mhp,ddio,pm,tcp; a record: rq:writeimm(a);"));
}

// docs/use/operating.md#security.
TEST_F(AlpheusdPlatformTest, NodeSaysWhetherItHasAKey) {
  EXPECT_THAT(Run({}).error,
              HasSubstr("cluster key: none. Anyone who reaches this node"));
  EntropyRandom entropy;
  const std::string key = directory_.File("the.key");
  ASSERT_TRUE(quorum::MakeClusterKeyFile(key, entropy).ok());
  std::ofstream(cluster_)
      << "cluster_id = \"9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a\"\n"
         "key_file = \"the.key\"\n"
         "[[member]]\nnode = 1\naddress = \"127.0.0.1:1\"\n";
  EXPECT_THAT(Run({}).error, HasSubstr("cluster key: " + key));
}

TEST_F(AlpheusdPlatformTest, ConfigurationDeclaresIt) {
  const std::string config = WriteConfig("platform = \"wsp,no-ddio\"\n");
  EXPECT_THAT(Run({"--config", config}).error,
              HasSubstr("platform wsp,no-ddio,dram,tcp;"));
  // The command line wins.
  EXPECT_THAT(Run({"--config", config, "--platform", "mhp"}).error,
              HasSubstr("platform mhp,ddio,dram,tcp;"));
}

TEST_F(AlpheusdPlatformTest, FileThatIsNoneOfOptionsIsNamed) {
  const std::string config = WriteConfig("cluster_id = \"a\"\n");
  EXPECT_EQ(
      Run({"--config", config}).error,
      config +
          ": 'cluster_id' is not an option. Is this the file of options, and "
          "not the cluster file?\nRun with --help for more information.\n");
  EXPECT_THAT(Run({"--config", config + ".none"}).error,
              HasSubstr(config + ".none can't be read. Is the path right?\n"));
}

TEST_F(AlpheusdPlatformTest, WhatIsNoPlatformIsRefused) {
  const std::string config = WriteConfig("platform = \"adr\"\n");
  for (const demo::ProgramResult& result :
       {Run({"--platform", "adr"}), Run({"--config", config})}) {
    EXPECT_EQ(result.end.exit_status, 2);
    EXPECT_THAT(result.error,
                AllOf(HasSubstr("--platform"), HasSubstr("no word \"adr\""),
                      HasSubstr("dmp or mhp or wsp")));
  }
}

// P-R7: whatever this machine is, it is told when it shows less.
TEST_F(AlpheusdPlatformTest, ClaimThatTheMachineDoesNotShowIsTold) {
  constexpr char kDoubt[] = "shows no sign of it";
  EXPECT_THAT(Run({"--platform", "dmp"}).error, Not(HasSubstr(kDoubt)));
  for (const char* platform : {"mhp", "wsp"}) {
    const std::string told = Run({"--platform", platform}).error;
    EXPECT_EQ(told.find(kDoubt) == std::string::npos,
              LibpmemPersistence::DetectAutoFlush())
        << told;
  }
}

// Each claim that this node's adapter is short of has its warning.
TEST_F(AlpheusdPlatformTest, ClaimsBeyondTheAdapterAreTold) {
  const std::string told =
      Run({"--platform", "wsp,no-ddio,pm,infiniband,native-flush,atomic-write"})
          .error;
  for (const char* warning :
       {"platform: adapters are declared to keep what they have received",
        "platform: adapters are declared to write past the caches",
        "platform: the transport is declared to be infiniband",
        "and this node's adapter is tcp", "Leave native-flush out",
        "Leave atomic-write out", "this node has them in DRAM"}) {
    EXPECT_THAT(told, HasSubstr(warning));
  }
  EXPECT_THAT(Run({}).error, Not(HasSubstr("declared to")));
}

// The sample names the true default.
TEST_F(AlpheusdPlatformTest, SampleHasTheDefault) {
  std::ifstream sample(ALPHEUS_SAMPLE_NODE);
  const std::string text{std::istreambuf_iterator<char>(sample), {}};
  const size_t at = text.find("# platform = ");
  ASSERT_NE(at, std::string::npos);
  const std::string line = text.substr(at + 2, text.find('\n', at) - at - 2);
  EXPECT_EQ(WithoutTimes(Run({"--config", WriteConfig(line + "\n")}).error),
            WithoutTimes(Run({}).error));
  EXPECT_EQ(line, "platform = \"dmp,ddio,dram,tcp\"");
}

}  // namespace
}  // namespace alpheus::testing
