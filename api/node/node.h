// SPDX-License-Identifier: Apache-2.0
// node: keeps the replicas of one member of a cluster, and serves them to
// whoever is primary: what `alpheusd` runs.
//
// Idea: the replicas of a node are the files <log name>.alpheus of one
// directory. The node opens those that no other process has, and serves them
// until it is asked to release one: a process of this machine that wants to be
// primary with its own replica takes the file's lock then. It tells the node so
// (Hold); when it ends, however it ends, or gives way to who opens a new epoch,
// the node takes the file back.
//
// One thread polls fabric and server. It passes a little time without sleeping
// after the last activity, then sleeps until the next one: an idle node takes
// no time of a core, but for five looks a second at files that another process
// has, and two at those that it serves.
//
// Invariants:
//   ND1. A replica is served only while its file's lock is held (P-A7).
//   ND2. A file that can't be served (damaged, of another cluster, of another
//        node) is reported, left as it is, and disturbs no other.
//   ND3. A replica whose medium failed is closed, and opened again as suspect:
//        what is read from it then may only be in the page cache, so that it
//        holds nothing until an epoch has been installed on it anew. It is
//        tried again and again, at most once a minute, and the lock is kept
//        until its superline says so: whoever takes the file then knows.
//   ND4. What is known of a file holds as long as the file: one that was
//        removed is forgotten, one that was put in its place is read anew, and
//        a new one is found, a second after the next thing that happens, or as
//        soon as somebody asks for its log.
//   ND5. Where memory runs out in the work for one log, its file is closed and
//        opened anew; the others are served on.
//   ND6. A replica whose file, or a folder above it, was removed or replaced,
//        or which is no longer whole, acknowledges nothing a second later, and
//        is let go of; so is one of which a page is missing. If its path leads
//        to a replica again, that one is served.
// Thread safety: Stop and Reload by any thread, and by signal handlers'
// threads; all else by one thread.
// References: protocol P-A4, P-A7; docs/design/replication.md.
#ifndef ALPHEUS_API_NODE_NODE_H_
#define ALPHEUS_API_NODE_NODE_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
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
#include "api/node/replica_file.h"
#include "api/wiring/adapter.h"
#include "api/wiring/retry_times.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "log/pmem/file_descriptor.h"
#include "quorum/members/configuration.h"
#include "recovery/server/replica_server.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"

namespace alpheus {

struct NodeOptions {
  std::string cluster_file;
  uint64_t node = 0;      // of the cluster file
  std::string directory;  // of the replicas; must exist
  // Where to listen; empty: the member's address in the cluster file.
  std::string listen = {};
  // What keeps records on this machine; see ParsePlatform.
  Platform platform = {};
  // Turns without sleeping after the last activity; each yields the core.
  uint32_t yield_turns = 200;
  // Of its replicas, all the time, so many bytes of records each second; 0:
  // only when somebody asks for it.
  uint64_t scrub_bytes_per_second = uint64_t{8} << 20;
  // From the end of a pass over a log to the next one.
  uint64_t scrub_interval_seconds = 24 * uint64_t{3'600};
  // Connections that a peer may have without a promise: such as have not said
  // hello; not proved the key; were proved and wait, of each kind; and follow
  // (replica_server.h, RS4). More than 0.
  uint64_t silent_max = 64;
  uint64_t unproved_max = 32;
  uint64_t waiting_max = 32;
  uint64_t followers_max = 64;
  // What persists pages of a plain file.
  MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
  AdapterOpener open_adapter = OpenAdapter;
  // Gets one sentence for each thing that an operator may want to know.
  std::function<void(const std::string&)> tell = [](const std::string&) {};
};

class Node final : private LogCreator {
 public:
  // Opens the replicas and listens. Errors: as LoadClusterFile; NotFound (the
  // cluster file has no such node; no directory); AlreadyExists (the address is
  // in use); InvalidArgument, Unavailable (address); Unimplemented (nothing is
  // built in that persists records on its platform).
  static absl::StatusOr<std::unique_ptr<Node>> Start(NodeOptions options);
  // Whether Start could begin by these options and the files that they name,
  // in one sentence. Opens no replica, and takes neither port nor lock. Errors:
  // as Start.
  static absl::StatusOr<std::string> Check(const NodeOptions& options);
  ~Node() override;

  // Serves until Stop is called, or was before.
  void Run();
  void Stop();

  // Has the node go on with the cluster file as it is now, and of these options
  // with yield_turns, scrubbing and the numbers of places; looks at its
  // directory and at all files that are not served, too. Connections stay as
  // they are. `tell` says what became of it, and which of the other options
  // need a restart. Errors, with nothing changed: as LoadClusterFile;
  // FailedPrecondition (another cluster, fabric or list without this node).
  absl::Status Reload(const NodeOptions& options);

  // Where it listens.
  const std::string& address() const { return address_; }

 private:
  // One of the files in the directory.
  struct Held {
    std::unique_ptr<ReplicaFile> file;  // while this node has its lock
    std::pair<dev_t, ino_t> inode{};    // of `file`
    bool is_served = false;
    int64_t look_again_at = 0;  // else
    int64_t left_until = 0;     // to the process that asked for it
    Epoch left_epoch{};         // of its records then
    absl::Status why;           // why it could not be served
    std::string why_not_own;    // if that is why; for rejections
    bool memory_told = false;   // what its peers write to, and what follows
    bool suspect = false;       // its medium failed, and that is not on it yet
    bool is_lost = false;       // its path leads nowhere (ND4)
    RetryTimes retries{1'000'000'000, 60'000'000'000};  // of what takes time
  };

  Node(NodeOptions options, ClusterConfiguration cluster);

  absl::StatusOr<std::string> OwnAddress() const;
  absl::Status Begin();
  ReplicaServerOptions ServerOptions();
  ScrubbingOptions Scrubbing() const;
  absl::Status TellPlatform() const;
  // And the members.
  void TellKey() const;
  void NoteRefused(std::string_view peer, StrangerEnd why);
  // Of those that are not known yet; registers them only.
  absl::Status FindFiles();
  bool HasDirectoryChanged();
  bool IsReplaced(const std::string& log_name, const Held& held) const;
  absl::StatusOr<ClusterConfiguration> LoadAgain(
      const NodeOptions& options) const;
  std::string OptionsOfAStart(const NodeOptions& options) const;
  void TakeChange();
  void TryToServe(const std::string& log_name);
  // The same now, of a log whose file another process had.
  void LookNow(Uuid log_id);
  // Whether the process that it was left to has had it since.
  bool WasTaken(const std::string& log_name, const Held& held) const;
  absl::StatusOr<std::unique_ptr<ServedLog>> Open(const std::string& log_name,
                                                  Held& held);
  void TellMemory(const std::string& log_name, Held& held);
  absl::Status Unserved(Uuid log_id);
  absl::Status WhyUnserved(Uuid log_id) const;
  // What `read` makes of a region that a process of this machine has.
  template <class Said>
  absl::StatusOr<Said> OfHeld(
      Uuid log_id,
      std::optional<Said> (*read)(std::span<std::byte> region, Uuid cluster_id,
                                  Uuid log_id, NodeId node)) const;
  void LookSoon(Uuid log_id);
  bool IsLookDue() const;
  void ReleaseAsked();
  void LookAtFiles();
  void CloseFailed();
  void CloseStarved();
  void CloseLost(const std::string& log_name, Held& held);
  void LookAgain();
  Deadline NextDeadline() const;
  std::string PathOf(const std::string& log_name) const;

  absl::StatusOr<std::unique_ptr<ServedLog>> Create(
      Uuid log_id, const Format& format) override;

  struct Change {
    NodeOptions options;
    ClusterConfiguration cluster;
  };

  NodeOptions options_;
  ClusterConfiguration cluster_;
  std::string address_;
  EntropyRandom random_;
  std::map<std::string, Held> files_;  // by log name; outlive the server
  std::vector<Uuid> to_release_;
  bool looks_soon_ = false;
  bool is_gone_ = false;               // the file that TryToServe was to serve
  int64_t files_due_at_ = 0;           // the next look at files that are served
  FileDescriptor directory_lock_{-1};  // from Begin on
  std::unique_ptr<Fabric> fabric_;     // too
  std::unique_ptr<ReplicaServer> server_;
  // What was found in the directory and is no replica; told once.
  std::set<std::string> passed_over_;
  std::filesystem::file_time_type directory_time_;  // when it was read
  int64_t look_at_directory_at_ = 0;
  std::atomic<bool> stopped_{false};
  Mutex change_mutex_;
  std::optional<Change> change_ ABSL_GUARDED_BY(change_mutex_);
  std::atomic<bool> has_change_{false};
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_NODE_H_
