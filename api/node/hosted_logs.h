// SPDX-License-Identifier: Apache-2.0
// hosted_logs: the replicas of the logs that one thread of a node has: opens
// their files, has a server serve them, and gives them up.
//
// Idea: the replicas of a node are the files <log name>.alpheus of one
// directory. A thread opens those of its own logs that no other process has,
// and serves them until it is asked to release one. A process of this machine
// that wants to be primary with its own replica then takes the file's lock, and
// tells the node so (Claim). When that process ends in any way, or steps down
// for the opener of a new epoch, the node takes the file back.
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
//        second after the next activity of its thread, or at once if a peer
//        asks for its log.
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
//   ND8. A file is touched by the thread of its log's group alone.
// Thread safety: one thread.
// References: protocol P-A4, P-A7; docs/design/replication.md.
#ifndef ALPHEUS_API_NODE_HOSTED_LOGS_H_
#define ALPHEUS_API_NODE_HOSTED_LOGS_H_

#include <sys/types.h>

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
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/node/replica_file.h"
#include "api/wiring/retry_times.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "recovery/server/local_regions.h"
#include "recovery/server/replica_server.h"
#include "recovery/server/served_log.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform.h"

namespace alpheus {

struct HostedLogsOptions {
  std::string cluster_file;  // for messages
  Uuid cluster_id;
  NodeId node;
  std::string directory;
  replication::Platform platform = {};
  // Function that persists pages of a plain file.
  MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
  // How many threads the node has, and the number of this one.
  uint32_t threads = 1;
  uint32_t number = 0;
  // Sink for events that an operator may want to know, one sentence each.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

class HostedLogs final : public recovery::LogCreator,
                         public recovery::LocalRegions {
 public:
  explicit HostedLogs(HostedLogsOptions options)
      : options_(std::move(options)) {}

  // Sets by which adapter peers write to the replicas, and who serves them. The
  // server must be destroyed before this object.
  void ServeBy(fabric::Fabric& fabric, recovery::ReplicaServer& server) {
    fabric_ = &fabric;
    server_ = &server;
  }

  // Requires for all below: ServeBy was called.

  // Registers the files that are not known yet. Errors: NotFound (no
  // directory).
  absl::Status FindFiles();
  // Releases what processes of this machine have asked for.
  void ReleaseAsked();
  bool has_asked() const { return !to_release_.empty(); }
  // Closes what ran out of memory; it is opened again.
  void CloseStarved();
  // Closes files that failed, and tries those again that are due.
  void Recheck();
  // Returns whether Recheck has something to do at once, since it was asked
  // last.
  bool TakeRechecksSoon() { return std::exchange(rechecks_soon_, false); }
  // Makes all files due that are not served.
  void RecheckUnserved();
  // Returns when Recheck is due; not set: never.
  Deadline NextCheck() const;

  // Returns the name of a log, or its id if no file of it is known.
  std::string NameOf(Uuid log_id) const;
  // Returns whether the log is served, and not deleted.
  bool IsServed(const std::string& log_name) const;
  // Visits the logs that are not deleted, by their names. `region` is empty for
  // one that is not served.
  void ForEach(absl::FunctionRef<void(const std::string& log_name, Uuid log_id,
                                      std::span<std::byte> region)>
                   visit) const;

  // recovery::LogCreator.
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Create(
      Uuid log_id, const recovery::Format& format) override;
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> RemoveRecords(
      Uuid log_id) override;

  // recovery::LocalRegions.
  bool ReleaseRegion(Uuid log_id) override;
  absl::Status WhyUnserved(Uuid log_id) override;
  absl::StatusOr<recovery::ServerHello> ReadServerHello(Uuid log_id) override;
  absl::StatusOr<recovery::Followed> ReadFollowed(Uuid log_id) override;
  std::string DescribeLockHolder(Uuid log_id) override;
  void OnLockHolderGone(Uuid log_id) override;

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
  using Files = std::map<std::string, HostedFile>;  // by log name

  // Returns whether the log is this thread's (ND8).
  bool IsOwn(const std::string& log_name) const;
  Files::iterator Find(Uuid log_id);
  Files::const_iterator Find(Uuid log_id) const;
  std::string PathOf(const std::string& log_name) const;
  bool HasDirectoryChanged();
  bool IsReplaced(const std::string& log_name, const HostedFile& hosted) const;
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
  void CheckFiles();
  void CloseFailed();
  void CloseLost(const std::string& log_name, HostedFile& hosted);
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

  const HostedLogsOptions options_;
  fabric::Fabric* fabric_ = nullptr;
  recovery::ReplicaServer* server_ = nullptr;
  Files files_;  // outlive the server
  std::vector<Uuid> to_release_;
  bool rechecks_soon_ = false;
  bool is_gone_ = false;      // TryToServe found no file
  int64_t files_due_at_ = 0;  // next check of served files
  // Entries of the directory that are no replicas; reported once.
  std::set<std::string> passed_over_;
  std::filesystem::file_time_type directory_time_;  // when it was read
  int64_t check_directory_at_ = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_HOSTED_LOGS_H_
