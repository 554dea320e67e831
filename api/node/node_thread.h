// SPDX-License-Identifier: Apache-2.0
// node_thread: one thread of a node: an adapter, a server, and the logs of some
// groups.
//
// Idea: threads of a node share nothing that a record touches. Each polls an
// adapter and a server of its own, for logs of its own (log_group.h). The
// adapters share the node's address: the first one listens, and brings each
// connection to the thread of its log (tcp/socket_exchange.h).
//
// After the last activity the thread spins a little, then sleeps until the next
// one. An idle thread uses no CPU time, except for five checks a second of
// files that another process has, and two of those that it serves.
//
// Invariants:
//   NTH1. The operator's numbers are the node's. Each thread has an equal part
//         of places and of the speed of scrubbing, rounded up. Of places it has
//         kPlacesMin at least, if the node has so many: its logs may have as
//         many peers as if it were alone.
//   NTH2. A change of the options takes effect between two turns. The last
//         thread that has made it says so.
// Thread safety: Stop, Take, AskStatus and AwaitStatus by any thread, also
// before and while Run runs; the other members by one thread.
// References: docs/design/architecture.md#threads-of-a-node.
#ifndef ALPHEUS_API_NODE_NODE_THREAD_H_
#define ALPHEUS_API_NODE_NODE_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "api/node/hosted_logs.h"
#include "api/node/node_options.h"
#include "api/node/node_registrations.h"
#include "api/node/node_status.h"
#include "api/wiring/node_tls.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "quorum/members/configuration.h"
#include "recovery/server/replica_server.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/socket_exchange.h"

namespace alpheus {

// The threads of a node have this in common.
struct NodeThreadsShared {
  // Null: the cluster does not encrypt.
  std::shared_ptr<NodeTls> tls;
  // Null: there is one thread.
  std::shared_ptr<fabric::tcp::SocketExchange> exchange;

  uint32_t threads() const {
    return exchange == nullptr ? 1 : exchange->adapters();
  }
};

class NodeThread {
 public:
  static constexpr uint64_t kPlacesMin = 16;

  // The thread of this number, from 0 on.
  NodeThread(const NodeOptions& options,
             const quorum::ClusterConfiguration& cluster,
             const NodeThreadsShared& shared, uint32_t number);

  // Opens the adapter. Errors: as NodeOptions::open_adapter.
  absl::Status OpenAdapter();
  fabric::Fabric& adapter() { return *fabric_; }
  // Finds the files. Requires: OpenAdapter; the directory is locked. Errors: as
  // HostedLogs::FindFiles.
  absl::Status FindFiles();
  // Opens the files, and serves them as soon as Run runs. `address`: the
  // node's, for a membership service. Requires: FindFiles.
  void OpenFiles(const std::string& address);

  // Serves until Stop is called; returns at once if it was before. Errors:
  // ResourceExhausted (memory ran out where no log can be blamed for it). Logs
  // are not served any more then.
  absl::Status Run();
  void Stop();

  // Options and cluster file of a reload. `made`: called once they are in use.
  struct Change {
    NodeOptions options;
    quorum::ClusterConfiguration cluster;
    std::function<void()> made;
  };
  void Take(Change change);

  // Asks what the thread keeps and serves; the answer comes between two turns.
  // AwaitStatus takes what AskStatus returned. It returns nothing if the thread
  // does not come until `deadline`, or has been stopped.
  uint64_t AskStatus();
  std::optional<NodeStatus> AwaitStatus(uint64_t question, Deadline deadline);

 private:
  uint64_t PartOf(uint64_t of_the_node) const;
  uint64_t PlacesOf(uint64_t of_the_node) const;
  recovery::ReplicaServerOptions ServerOptions();
  recovery::ScrubbingOptions Scrubbing() const;
  void NoteRejected(std::string_view peer, fabric::UnauthenticatedEnd why,
                    std::string_view detail);
  void Loop();
  void Recheck();
  Deadline NextPoll() const;
  void MakeChange();
  void AnswerQuestions();
  NodeStatus StatusNow() const;
  // Has the membership service know the replicas that are served, and no
  // others.
  void UpdateRegistrations();
  void Register(const std::string& log_name, Uuid log_id,
                std::span<std::byte> region);

  const uint32_t number_;
  const NodeThreadsShared shared_;
  NodeOptions options_;
  quorum::ClusterConfiguration cluster_;
  std::string address_;
  EntropyRandom random_;
  HostedLogs logs_;                                  // outlive the server
  std::unique_ptr<fabric::Fabric> fabric_;           // from OpenAdapter on
  std::unique_ptr<recovery::ReplicaServer> server_;  // from FindFiles on
  // Set in a cluster with a membership service.
  std::optional<NodeRegistrations> registrations_;
  int64_t registrations_due_at_ = 0;  // when epochs are read again
  std::atomic<bool> stopped_{false};
  // There is a change, or a question.
  std::atomic<bool> has_news_{false};
  Mutex change_mutex_;
  std::optional<Change> change_ ABSL_GUARDED_BY(change_mutex_);
  std::mutex status_mutex_;
  std::condition_variable answered_;  // waited for with a time-out
  uint64_t asked_ = 0;                // guarded by status_mutex_, as the next
  uint64_t told_ = 0;
  NodeStatus status_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_THREAD_H_
