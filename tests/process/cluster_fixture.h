// SPDX-License-Identifier: Apache-2.0
// cluster_fixture: a cluster of the real programs for one test.
//
// Every wait has a deadline; a failure shows what the nodes said.
#ifndef ALPHEUS_TESTS_PROCESS_CLUSTER_FIXTURE_H_
#define ALPHEUS_TESTS_PROCESS_CLUSTER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/support/fixtures/patience.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/oracles/log_history.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/writers/cluster_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::testing {

// tools/cli/io/exit_status.h, written out: scripts rely on the numbers.
inline constexpr int kGood = 0;
inline constexpr int kFailed = 1;
inline constexpr int kDataLoss = 3;
inline constexpr int kUnavailable = 4;

class ClusterTest : public ::testing::Test {
 protected:
  // Three nodes that run; programs as built, directory of the test's own.
  static demo::ClusterOptions ThreeNodes(const std::string& directory);
  void StartCluster(const demo::ClusterOptions& options);
  void StartCluster() { StartCluster(ThreeNodes(directory_.path())); }
  void TearDown() override;

  // `alpheus COMMAND --cluster FILE ARGUMENTS...`
  demo::ProgramResult Run(const std::string& command,
                          const std::vector<std::string>& arguments,
                          const std::string& input = "");
  // Expects success; returns standard output.
  std::string RunWell(const std::string& command,
                      const std::vector<std::string>& arguments,
                      const std::string& input = "");
  // `alpheus COMMAND --file REGION ARGUMENTS...` of a node's replica.
  demo::ProgramResult RunOnReplica(const std::string& command, int node,
                                   const std::vector<std::string>& arguments);

  void Format(const std::string& log = "main",
              const std::string& size = "1MiB");
  // By a primary of this node, without a replica; each line is durable before
  // the next one is appended.
  void Append(int node, const std::string& lines,
              const std::string& log = "main");
  // The records that W replicas hold, as lines.
  std::string Cat(const std::string& log = "main");
  std::string CatReplica(int node);
  // `status --json`: one for each node, in order.
  std::vector<nlohmann::json> Status(const std::string& log = "main");
  bool IsServed(int node, const std::string& log = "main");

  std::unique_ptr<demo::ClusterWriter> StartWriter(
      demo::ClusterWriterPlan plan = {});
  // Fails unless it acknowledges so many records in all.
  void MustReach(demo::ClusterWriter* writer, uint64_t ack_count);
  // Fails unless it comes to have all replicas in sync. Only then may any of
  // them go: one that was slow when the epoch was opened joins it later.
  void MustHaveAllInSync(demo::ClusterWriter* writer);
  // Everything that the writers were told must be in the log.
  void CheckLog(const std::vector<const demo::ClusterWriter*>& writers);

  const TempDirectory directory_;
  const demo::Feed feed_ = demo::Feed::FromText("alpha\nbravo\ngamma\ndelta\n");
  demo::LogHistory history_{&feed_};
  std::unique_ptr<demo::Cluster> cluster_;
};

// "0\n1\n" and so on: so many lines from `first` on.
std::string CountLines(int count, int first = 0);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_PROCESS_CLUSTER_FIXTURE_H_
