// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/test_cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "log/base/clock.h"
#include "log/base/random.h"
#include "quorum/cluster_key.h"
#include "replication/fabric/tcp/tcp_fabric.h"

namespace alpheus::testing {

TestCluster::TestCluster(int nodes, int write_quorum, const Machines& machines)
    : machines_(machines),
      file_(directory_.File("cluster.toml")),
      nodes_(nodes) {
  EntropyRandom random;
  // All at once, so that each gets a port of its own.
  std::vector<std::unique_ptr<TcpFabric>> adapters;
  for (Running& running : nodes_) {
    adapters.push_back(
        std::make_unique<TcpFabric>(TcpFabricOptions(), Clock::Real(), random));
    const auto address = adapters.back()->Listen("127.0.0.1:0");
    EXPECT_TRUE(address.ok()) << address.status();
    running.address = *address;
  }
  std::ofstream file(file_);
  file << "cluster_id = \"9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a\"\n"
       << "key_file = \"" << key_file() << "\"\n";
  EXPECT_TRUE(MakeClusterKeyFile(key_file(), random).ok());
  if (write_quorum != 0) file << "write_quorum = " << write_quorum << "\n";
  for (int node = 1; node <= nodes; ++node) {
    file << "[[member]]\nnode = " << node << "\naddress = \""
         << nodes_[node - 1].address << "\"\n";
    std::filesystem::create_directory(DirectoryOf(node));
  }
  file.close();
  adapters.clear();
  for (int node = 1; node <= nodes; ++node) Start(node);
}

std::string TestCluster::WriteList(int configuration_id,
                                   const std::vector<int>& nodes,
                                   int write_quorum) const {
  const std::string path =
      directory_.File("cluster" + std::to_string(configuration_id) + ".toml");
  std::ofstream file(path);
  file << "cluster_id = \"9f0c5f5e-6a0b-4c0e-8f5a-2d1f6d6f4b1a\"\n"
       << "configuration_id = " << configuration_id << "\n"
       << "write_quorum = " << write_quorum << "\n"
       << "key_file = \"" << key_file() << "\"\n";
  for (const int node : nodes) {
    file << "[[member]]\nnode = " << node << "\naddress = \""
         << nodes_[node - 1].address << "\"\n";
  }
  return path;
}

TestCluster::~TestCluster() {
  for (int node = 1; node <= size(); ++node) Stop(node);
  if (::testing::Test::HasFailure()) {
    std::fprintf(stderr, "The nodes told:\n%s", Told().c_str());
  }
}

std::string TestCluster::DirectoryOf(int node) const {
  return directory_.File("node" + std::to_string(node));
}

std::string TestCluster::ReplicaPath(int node, const std::string& log) const {
  return DirectoryOf(node) + "/" + log + ".alpheus";
}

std::string TestCluster::Told() {
  const std::lock_guard lock(mutex_);
  return told_;
}

void TestCluster::Start(int node) {
  Running& running = nodes_[node - 1];
  NodeOptions options;
  options.cluster_file = file_;
  options.node = node;
  options.directory = DirectoryOf(node);
  options.yield_turns = 0;
  options.sync = machines_.sync;
  options.open_adapter = machines_.open_adapter;
  options.platform = machines_.platform;
  options.tell = [this, node](const std::string& sentence) {
    const std::lock_guard lock(mutex_);
    told_ += "node " + std::to_string(node) + ": " + sentence + "\n";
  };
  auto started = Node::Start(options);
  ASSERT_TRUE(started.ok()) << started.status();
  running.node = *std::move(started);
  running.thread = std::thread([&running] { running.node->Run(); });
}

void TestCluster::Stop(int node) {
  Running& running = nodes_[node - 1];
  if (running.node == nullptr) return;
  running.node->Stop();
  running.thread.join();
  running.node.reset();
}

}  // namespace alpheus::testing
