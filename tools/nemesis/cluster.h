// SPDX-License-Identifier: Apache-2.0
// cluster: nodes of the real `alpheusd` on this machine, to be killed, paused
// and started again. Used by the demonstration and by tests.
//
// All is in one directory: cluster.toml, and node-N with the regions of node N.
// Each cluster has a loopback address of its own, drawn at random, so that
// clusters side by side don't meet, and no connection of others takes a port
// while its node is down.
//
// Invariants:
//   DCL1. Only processes that this object started get a signal; none outlives
//         it.
//   DCL2. A node that ends without having been told to is an error of the next
//         call that looks (CheckHealth).
//   DCL3. Every wait has a deadline; its error tells what the node has said.
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_CLUSTER_H_
#define ALPHEUS_TOOLS_NEMESIS_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/child_process.h"

namespace alpheus::demo {

struct ClusterOptions {
  std::string alpheus;    // path of the program
  std::string alpheusd;   // path of the node's program
  std::string directory;  // exists
  int node_count = 3;
  int write_quorum = 0;  // 0: the file doesn't say, which means the majority
  // Addresses of adapters with RDMA, one for each node, which talk over these;
  // none: over TCP and loopback.
  std::vector<std::string> rdma_hosts = {};
  // Programs that become a node's program, by node: what comes before its path.
  std::map<int, std::vector<std::string>> wrappers = {};
};

class Cluster {
 public:
  // Draws addresses and writes the cluster's file; starts nothing.
  // Errors: Unavailable (no port, or a file can't be written).
  static absl::StatusOr<std::unique_ptr<Cluster>> Create(
      const ClusterOptions& options);

  // Nodes are numbered from 1.
  int node_count() const { return static_cast<int>(nodes_.size()); }
  int write_quorum() const;
  int read_quorum() const { return node_count() - write_quorum() + 1; }
  // So many nodes may be down while a log is opened and written.
  int spare_count() const;

  // Returns when the node says that it listens. Nothing if it runs; one that
  // is paused goes on. Errors: Unavailable; DeadlineExceeded; DataLoss (it
  // ended).
  absl::Status Start(int node);
  absl::Status StartAll();
  // SIGKILL, and waits for the end. Nothing if it does not run.
  void Kill(int node);
  // SIGSTOP and SIGCONT. Requires: it runs.
  void Pause(int node);
  void Continue(int node);
  // SIGTERM. Errors: DataLoss (exit status other than 0), DeadlineExceeded.
  absl::Status Terminate(int node);
  bool is_running(int node) const;  // paused ones too
  bool is_paused(int node) const;

  // Returns when every node serves its replica of this log: one that a primary
  // had as its own is taken over by its node a moment after that has ended.
  // Errors: DeadlineExceeded, Unavailable; as CheckHealth.
  absl::Status AwaitServed(const std::string& log);

  // Reads what the nodes have said, so that none waits for its reader.
  void Listen();
  // Errors: DataLoss (a node ended by itself).
  absl::Status CheckHealth();
  // All that the nodes said so far, for failure reports.
  std::string Story();

  // `alpheus COMMAND --cluster FILE ARGUMENTS...`
  Program Alpheus(const std::string& command,
                  const std::vector<std::string>& arguments) const;
  // Runs it; returns its standard output.
  // Errors: DataLoss (it failed), DeadlineExceeded.
  absl::StatusOr<std::string> MustSucceed(
      const std::string& command, const std::vector<std::string>& arguments);

  const std::string& alpheus() const { return options_.alpheus; }
  const std::string& address(int node) const { return At(node).address; }
  std::string file() const;
  std::string key_file() const;
  std::string node_directory(int node) const;
  std::string region(int node, const std::string& log) const;

  // As `file`, with other addresses: `addresses` has one for each node.
  absl::Status WriteFile(const std::string& path,
                         const std::vector<std::string>& addresses) const;

 private:
  struct Node {
    std::string address;
    std::optional<ChildProcess> process;
    bool is_paused = false;
    std::string said;  // over all its processes
  };

  explicit Cluster(const ClusterOptions& options) : options_(options) {}
  absl::Status DrawAddresses();
  Node& At(int node) { return nodes_[static_cast<size_t>(node) - 1]; }
  const Node& At(int node) const {
    return nodes_[static_cast<size_t>(node) - 1];
  }
  absl::Status AwaitReady(int node);
  static void ReadWhatItSaid(Node* node);

  const ClusterOptions options_;
  std::string cluster_id_;
  std::vector<Node> nodes_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_CLUSTER_H_
