// SPDX-License-Identifier: Apache-2.0
// test_cluster: the nodes of a cluster as threads of the test, on loopback.
#ifndef ALPHEUS_TESTS_TESTING_TEST_CLUSTER_H_
#define ALPHEUS_TESTS_TESTING_TEST_CLUSTER_H_

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/node/node.h"
#include "log/pmem/msync_persistence.h"
#include "tests/testing/temp_directory.h"

namespace alpheus::testing {

class TestCluster {
 public:
  // What all nodes have.
  struct Machines {
    MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
    AdapterOpener open_adapter = OpenAdapter;
    Platform platform = {};
  };

  // All nodes run.
  explicit TestCluster(int nodes, int write_quorum = 0)
      : TestCluster(nodes, write_quorum, Machines()) {}
  TestCluster(int nodes, int write_quorum, MsyncPersistence::SyncFunction sync)
      : TestCluster(nodes, write_quorum, Machines{.sync = sync}) {}
  TestCluster(int nodes, int write_quorum, const Machines& machines);
  ~TestCluster();

  int size() const { return static_cast<int>(nodes_.size()); }
  // Nodes count from 1.
  void Start(int node);
  void Stop(int node);

  // The list of members that the nodes have; and a file with another one.
  const std::string& file() const { return file_; }
  std::string WriteList(int configuration_id, const std::vector<int>& nodes,
                        int write_quorum) const;
  std::string key_file() const { return directory_.File("cluster.key"); }
  // Of a node's replica.
  std::string ReplicaPath(int node, const std::string& log = "main") const;
  const std::string& AddressOf(int node) const {
    return nodes_[static_cast<size_t>(node) - 1].address;
  }
  // What the nodes told.
  std::string Told();

 private:
  struct Running {
    std::string address;
    std::unique_ptr<Node> node;
    std::thread thread;
  };

  std::string DirectoryOf(int node) const;

  const Machines machines_;
  TempDirectory directory_;
  std::string file_;
  std::vector<Running> nodes_;
  std::mutex mutex_;
  std::string told_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_TESTING_TEST_CLUSTER_H_
