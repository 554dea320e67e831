// SPDX-License-Identifier: Apache-2.0
// node: keeps the replicas of one member of a cluster, and serves them to
// primaries: the core of `alpheusd`.
//
// Idea: the replicas of a node are the files <log name>.alpheus of one
// directory. The node opens those that no other process has, and serves them
// until it is asked to release one. A process of this machine that wants to be
// primary with its own replica then takes the file's lock, and tells the node
// so (Claim). When that process ends in any way, or steps down for the opener
// of a new epoch, the node takes the file back.
//
// One thread polls fabric and server. After the last activity it spins a
// little, then sleeps until the next one. An idle node uses no CPU time, except
// for five checks a second of files that another process has, and two of those
// that it serves.
//
// Invariants:
//   ND1. A replica is served only while its file's lock is held (P-A7).
//   ND2. A file that can't be served (damaged, of another cluster, of another
//        node) is reported and left as it is. It does not affect other files.
//   ND3. A replica whose medium failed is closed, and opened again as suspect.
//        Its bytes may only be in the page cache, so it holds nothing until an
//        epoch is installed on it again. The node retries at most once a
//        minute. It keeps the lock until the superline says "suspect", so that
//        the next process with the file knows.
//   ND4. Knowledge of a file lasts as long as the file. A removed file is
//        forgotten, a replaced one is read again, a new one is found: at most a
//        second after the next activity, or at once if a peer asks for its log.
//   ND5. If memory runs out in the work for one log, its file is closed and
//        opened again; the others are still served.
//   ND6. A replica whose file or a folder above it was removed or replaced, or
//        whose file is no longer whole, acknowledges nothing a second later,
//        and is released. The same holds if a page is missing. If its path
//        leads to a replica again, that one is served.
//   ND7. The records of a log whose deletion is decided go in one step: its
//        file is replaced by one that has the mark and no record. A node that
//        ends in between does it when it starts. A file that can't be replaced,
//        as where there is no room for the other one, stays as it is, with its
//        mark. The node tries again, at most once a minute in the end. A device
//        can't be replaced; its mark stays, and its bytes.
// Thread safety: Stop, Reload and Observe by any thread, the first two by
// signal handlers' threads, too; the other members by one thread.
// References: protocol P-A4, P-A7; docs/design/replication.md.
#ifndef ALPHEUS_API_NODE_NODE_H_
#define ALPHEUS_API_NODE_NODE_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/node/node_registrations.h"
#include "api/node/node_status.h"
#include "api/node/replica_file.h"
#include "api/wiring/adapter.h"
#include "api/wiring/node_tls.h"
#include "api/wiring/retry_times.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "log/pmem/file_descriptor.h"
#include "quorum/members/configuration.h"
#include "recovery/server/local_regions.h"
#include "recovery/server/replica_server.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"

namespace alpheus {

struct NodeOptions {
  std::string cluster_file;
  uint64_t node = 0;      // id in the cluster file
  std::string directory;  // of the replicas; must exist
  // Address to listen on; empty: the member's address in the cluster file.
  std::string listen = {};
  // Platform on which records become persistent; see ParsePlatform.
  replication::Platform platform = {};
  // Turns without sleep after the last activity; each yields the core.
  uint32_t yield_turns = 200;
  // Speed of background scrubbing, in bytes of records per second; 0: only on
  // request.
  uint64_t scrub_bytes_per_second = uint64_t{8} << 20;
  // Seconds from the end of a pass over a log to the next one.
  uint64_t scrub_interval_seconds = 24 * uint64_t{3'600};
  // Limits on connections without a promise, each above 0 (ADM1 of
  // connection_admission.h): without a hello; without proof of the key; proved
  // and waiting, of each kind; following.
  uint64_t unopened_max = 64;
  uint64_t unproved_max = 32;
  uint64_t waiting_max = 32;
  uint64_t followers_max = 64;
  // Function that persists pages of a plain file.
  MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
  AdapterOpener open_adapter = OpenAdapter;
  // Sink for events that an operator may want to know, one sentence each.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

class Node final : private recovery::LogCreator,
                   private recovery::LocalRegions {
 public:
  // Opens the replicas and listens. Errors: as LoadClusterFile; NotFound (the
  // cluster file has no such node; no directory); AlreadyExists (the address is
  // in use); InvalidArgument, Unavailable (address); Unimplemented (no method
  // for its platform is built in).
  static absl::StatusOr<std::unique_ptr<Node>> Start(NodeOptions options);
  // Checks whether Start would succeed with these options and the files that
  // they name; returns one sentence. Opens no replica, and takes neither port
  // nor lock. Errors: as Start.
  static absl::StatusOr<std::string> Check(const NodeOptions& options);
  ~Node() override;

  // Serves until Stop is called. Returns at once if it was before.
  void Run();
  void Stop();

  // Switches to the current cluster file and to these options of yield_turns,
  // scrubbing and limits. Also looks at the files of encryption, before
  // anything else (NodeTls::Reload), and checks the directory and all files
  // that are not served. Connections stay. `say` gets the result, and the other
  // options that changed and need a restart. Errors, with nothing changed: as
  // LoadClusterFile; FailedPrecondition (another cluster, fabric or list
  // without this node).
  absl::Status Reload(const NodeOptions& options);

  // Returns what the node keeps now, as its thread sees it between two turns.
  // Blocks until then, at most `patience_ms`. Returns nothing if that thread
  // does not come: it does not run, or a medium keeps it.
  std::optional<NodeStatus> Observe(int64_t patience_ms);

  // Returns the address on which it listens.
  const std::string& address() const { return address_; }

 private:
  // File in the directory.
  struct HostedFile {
    std::unique_ptr<ReplicaFile> file;  // while this node has its lock
    std::pair<dev_t, ino_t> inode{};    // of `file`
    bool is_served = false;
    int64_t recheck_at = 0;   // time of the next try, if not served
    int64_t left_until = 0;   // reserved for the process that asked for it
    Epoch left_epoch{};       // log epoch at that time
    absl::Status why;         // why it could not be served
    std::string why_not_own;  // part of `why`, for rejections
    bool is_memory_reported = false;  // ReportMemory was done
    bool suspect = false;     // medium failed; superline doesn't say so yet
    bool is_lost = false;     // its path leads nowhere (ND4)
    bool is_deleted = false;  // its log is deleted, and its records are gone
    int64_t remove_at = 0;    // time of the next try to remove them; 0: none
    absl::Status why_kept;    // why the last try failed
    RetryTimes retries{1'000'000'000, 60'000'000'000};  // of slow tries
  };

  Node(NodeOptions options, quorum::ClusterConfiguration cluster);

  absl::StatusOr<std::string> OwnAddress() const;
  absl::Status Begin();
  recovery::ReplicaServerOptions ServerOptions();
  recovery::ScrubbingOptions Scrubbing() const;
  absl::Status ReportPlatform() const;
  // Reports the key, the encryption and the members.
  void ReportKey() const;
  void NoteRejected(std::string_view peer, fabric::UnauthenticatedEnd why,
                    std::string_view detail);
  // Registers the files that are not known yet.
  absl::Status FindFiles();
  bool HasDirectoryChanged();
  bool IsReplaced(const std::string& log_name, const HostedFile& hosted) const;
  absl::StatusOr<quorum::ClusterConfiguration> LoadAgain(
      const NodeOptions& options) const;
  std::string OptionsOfAStart(const NodeOptions& options) const;
  void TakeChange();
  // Tells those who observe.
  void AnswerObservers();
  NodeStatus StatusNow() const;
  // Has the membership service know the replicas that are served, and no
  // others.
  void UpdateRegistrations();
  void Register(const std::string& log_name, const HostedFile& hosted);
  void TryToServe(const std::string& log_name);
  // Tries to serve the log at once, if another process had its file.
  void RecheckNow(Uuid log_id);
  // Returns whether the process for which the file was reserved has had it.
  bool WasTaken(const std::string& log_name, const HostedFile& hosted) const;
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Open(
      const std::string& log_name, HostedFile& hosted);
  void ReportMemory(const std::string& log_name, HostedFile& hosted);
  // Returns what is known, without a look at the files.
  absl::Status UnservedReason(Uuid log_id) const;
  // Returns the result of `read` for a region that a process of this machine
  // has.
  template <class Said>
  absl::StatusOr<Said> OfClaimed(
      Uuid log_id,
      std::optional<Said> (*read)(std::span<std::byte> region, Uuid cluster_id,
                                  Uuid log_id, NodeId node)) const;
  bool IsCheckDue() const;
  void ReleaseAsked();
  void CheckFiles();
  void CloseFailed();
  void CloseStarved();
  void CloseLost(const std::string& log_name, HostedFile& hosted);
  void Recheck();
  Deadline NextPoll() const;
  std::string PathOf(const std::string& log_name) const;

  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Create(
      Uuid log_id, const recovery::Format& format) override;
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> RemoveRecords(
      Uuid log_id) override;
  // Does it for a file that this node has. Nothing is served of it any more.
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> RemoveRecords(
      const std::string& log_name, HostedFile& hosted);
  // Removes records that a process which ended left (ND7). Returns the log to
  // serve.
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> FinishRemoval(
      const std::string& log_name, HostedFile& hosted,
      std::unique_ptr<recovery::ServedLog> log);
  // Does the same for served logs whose removal failed before.
  void RetryRemovals();

  bool ReleaseRegion(Uuid log_id) override;
  absl::Status WhyUnserved(Uuid log_id) override;
  absl::StatusOr<recovery::ServerHello> ReadServerHello(Uuid log_id) override;
  absl::StatusOr<recovery::Followed> ReadFollowed(Uuid log_id) override;
  std::string DescribeLockHolder(Uuid log_id) override;
  void OnLockHolderGone(Uuid log_id) override;

  struct Change {
    NodeOptions options;
    quorum::ClusterConfiguration cluster;
  };

  NodeOptions options_;
  quorum::ClusterConfiguration cluster_;
  std::string address_;
  EntropyRandom random_;
  std::map<std::string, HostedFile> files_;  // by log name; outlive the server
  std::vector<Uuid> to_release_;
  bool rechecks_soon_ = false;
  bool is_gone_ = false;               // TryToServe found no file
  int64_t files_due_at_ = 0;           // next check of served files
  FileDescriptor directory_lock_{-1};  // from Begin on
  // From Begin on; null: the cluster does not encrypt.
  std::shared_ptr<NodeTls> tls_;
  std::unique_ptr<fabric::Fabric> fabric_;  // from Begin on
  std::unique_ptr<recovery::ReplicaServer> server_;
  // Set in a cluster with a membership service.
  std::optional<NodeRegistrations> registrations_;
  int64_t registrations_due_at_ = 0;  // when epochs are read again
  // Entries of the directory that are no replicas; reported once.
  std::set<std::string> passed_over_;
  std::filesystem::file_time_type directory_time_;  // when it was read
  int64_t check_directory_at_ = 0;
  std::atomic<bool> stopped_{false};
  Mutex change_mutex_;
  std::optional<Change> change_ ABSL_GUARDED_BY(change_mutex_);
  // There is a change, or somebody observes.
  std::atomic<bool> has_change_{false};
  std::mutex observe_mutex_;
  std::condition_variable observed_;  // waited for with a time-out
  uint64_t observers_asked_ = 0;      // guarded by observe_mutex_, as the next
  uint64_t observers_told_ = 0;
  NodeStatus observed_status_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_H_
