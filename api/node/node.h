// SPDX-License-Identifier: Apache-2.0
// node: keeps the replicas of one member of a cluster, and serves them to
// primaries: the core of `alpheusd`.
//
// Idea: a node is one member with one address and one directory, and has a
// thread for each core that it is given. The logs are spread over the threads,
// which do the work (node_thread.h, hosted_logs.h). This class is what the
// threads have in common: the cluster file, the directory's lock, the address,
// and what an operator asks for.
//
// Invariants:
//   NOD1. A node serves whole or not at all: when one of its threads fails, all
//         stop, and Run says why. Else the logs of one thread would be gone
//         while the node seems well.
// Thread safety: Stop, Reload and Observe by any thread, the first two by
// signal handlers' threads, too; the other members by one thread.
// References: protocol P-A4, P-A7; docs/design/architecture.md.
#ifndef ALPHEUS_API_NODE_NODE_H_
#define ALPHEUS_API_NODE_NODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/node/node_options.h"
#include "api/node/node_status.h"
#include "api/node/node_thread.h"
#include "log/base/mutex.h"
#include "log/pmem/file_descriptor.h"
#include "quorum/members/configuration.h"

namespace alpheus {

// Threads of a node that is not told how many. More cores serve more logs than
// most nodes have; each idle thread still costs an adapter.
inline constexpr uint32_t kThreadsByItself = 8;

class Node final {
 public:
  // Opens the replicas and listens. Errors: as LoadClusterFile; NotFound (the
  // cluster file has no such node; no directory); AlreadyExists (the address is
  // in use); InvalidArgument, Unavailable (address); InvalidArgument (threads);
  // Unimplemented (no method for its platform is built in).
  static absl::StatusOr<std::unique_ptr<Node>> Start(NodeOptions options);
  // Checks whether Start would succeed with these options and the files that
  // they name; returns one sentence. Opens no replica, and takes neither port
  // nor lock. Errors: as Start.
  static absl::StatusOr<std::string> Check(const NodeOptions& options);
  ~Node();

  // Serves until Stop is called, in this thread and in those that it starts.
  // Returns at once if Stop was called before. Called once. Errors: as
  // NodeThread::Run; ResourceExhausted (no thread could be started).
  absl::Status Run();
  void Stop();

  // Switches to the current cluster file and to these options of yield_turns,
  // scrubbing and limits. Also looks at the files of encryption, before
  // anything else (NodeTls::Reload), and checks the directory and all files
  // that are not served. Connections stay. `say` gets the result, and the other
  // options that changed and need a restart. Errors, with nothing changed: as
  // LoadClusterFile; FailedPrecondition (another cluster, fabric or list
  // without this node).
  absl::Status Reload(const NodeOptions& options);

  // Returns what the node keeps now, as its threads see it between two turns.
  // Blocks until then, at most `patience_ms`. Returns nothing if a thread does
  // not come: it does not run, or a medium keeps it.
  std::optional<NodeStatus> Observe(int64_t patience_ms);

  // Returns the address on which it listens.
  const std::string& address() const { return address_; }

 private:
  Node(NodeOptions options, quorum::ClusterConfiguration cluster);

  absl::StatusOr<std::string> OwnAddress() const;
  // Returns how many threads the node has.
  absl::StatusOr<uint32_t> Threads() const;
  absl::Status Begin();
  absl::Status ReportPlatform() const;
  // Reports the key, the encryption and the members.
  void ReportKey(const quorum::ClusterConfiguration& cluster) const;
  void ReportThreads() const;
  absl::StatusOr<quorum::ClusterConfiguration> LoadAgain(
      const NodeOptions& options) const;
  std::string OptionsOfAStart(const NodeOptions& options) const;
  void RunThread(NodeThread& thread);
  void Fail(const absl::Status& why);

  // These are of the start. A reload changes those that the threads have.
  const NodeOptions options_;
  const quorum::ClusterConfiguration cluster_;
  std::string address_;
  FileDescriptor directory_lock_{-1};  // from Begin on
  NodeThreadsShared shared_;
  std::vector<std::unique_ptr<NodeThread>> threads_;  // from Begin on
  Mutex failure_mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(failure_mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_H_
