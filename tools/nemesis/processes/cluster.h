// SPDX-License-Identifier: Apache-2.0
// cluster: nodes of the real `alpheusd` on this machine, to be killed, paused
// and started again. Used by the demonstration and by tests.
//
// All files are in one directory: cluster.toml, and node-N with the regions of
// node N. Each cluster has a loopback address of its own, drawn at random. So
// concurrent clusters don't meet, and no other connection takes a port while
// its node is down.
//
// Invariants:
//   DCL1. Only processes that this object started get a signal; none outlives
//         it.
//   DCL2. A node that ends without a request is an error of the next call that
//         checks (CheckHealth).
//   DCL3. Every wait has a deadline; its error includes the node's output.
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_CLUSTER_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_CLUSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::demo {

struct ClusterOptions {
  std::string alpheus;    // path of the program
  std::string alpheusd;   // path of the node's program
  std::string directory;  // exists
  int node_count = 3;
  int write_quorum = 0;  // 0: not in the file, which means the majority
  // Addresses of RDMA adapters, one for each node; none: TCP and loopback.
  std::vector<std::string> rdma_hosts = {};
  // ZooKeeper's servers, which must run on this machine; none: the membership
  // is static.
  std::vector<std::string> zookeeper = {};
  uint32_t session_timeout_ms = 2'000;
  std::string zookeeper_identity = {};  // name:password; empty: none
  std::string zookeeper_admin = {};     // name:digest; empty: none
  // Commands to put before a node's program, by node.
  std::map<int, std::vector<std::string>> wrappers = {};
  // Options to put behind those of a node's program, by node.
  std::map<int, std::vector<std::string>> node_options = {};
  // Where clients of the service reach nodes, by node.
  std::map<int, std::string> client_addresses = {};
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
  // Returns the number of nodes that may be down while a log is opened and
  // written.
  int spare_count() const;

  // Starts a node, or continues a paused one; returns when it listens. Does
  // nothing if it runs. Errors: Unavailable; DeadlineExceeded; DataLoss (it
  // ended).
  absl::Status Start(int node);
  absl::Status StartAll();
  // Sends SIGKILL, and waits for the end. Does nothing if it does not run.
  void Kill(int node);
  // Pauses with SIGSTOP; Resume sends SIGCONT. Requires: it runs.
  void Pause(int node);
  void Continue(int node);
  // Ends it with SIGTERM. Errors: DataLoss (exit status other than 0),
  // DeadlineExceeded.
  absl::Status Terminate(int node);
  bool is_running(int node) const;  // paused ones too
  bool is_paused(int node) const;
  // Returns the process of a node. Requires: it runs.
  pid_t pid(int node) const { return At(node).process->pid(); }

  // Waits until every node serves its replica of this log: a node takes a
  // primary's own replica back a moment after the primary's end.
  // Errors: DeadlineExceeded, Unavailable; as CheckHealth.
  absl::Status AwaitServed(const std::string& log);

  // Reads the nodes' output, so that none waits for its reader.
  void Listen();
  // Checks that no node ended by itself. Errors: DataLoss.
  absl::Status CheckHealth();
  // Returns the nodes' output so far, for failure reports.
  std::string Story();

  // Returns `alpheus COMMAND --cluster FILE ARGUMENTS...`
  Program Alpheus(const std::string& command,
                  const std::vector<std::string>& arguments) const;
  // Runs a command; returns its standard output.
  // Errors: DataLoss (it failed), DeadlineExceeded.
  absl::StatusOr<std::string> MustSucceed(
      const std::string& command, const std::vector<std::string>& arguments);

  const std::string& alpheus() const { return options_.alpheus; }
  const std::string& address(int node) const { return At(node).address; }
  std::string file() const;
  std::string key_file() const;
  std::string identity_file() const;
  std::string node_directory(int node) const;
  std::string region(int node, const std::string& log) const;

  // Writes a file like `file` with other addresses, one for each node, and for
  // each server of ZooKeeper.
  absl::Status WriteFile(const std::string& path,
                         const std::vector<std::string>& addresses,
                         const std::vector<std::string>& zookeeper) const;
  const std::vector<std::string>& zookeeper() const {
    return options_.zookeeper;
  }

 private:
  struct Node {
    std::string address;
    std::optional<ChildProcess> process;
    bool is_paused = false;
    std::string said;  // output of all its processes
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

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_CLUSTER_H_
