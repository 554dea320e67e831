// SPDX-License-Identifier: Apache-2.0
// replica_file: a replica's region, its lock, and the persistence that its
// medium and the adapter require.
//
// Idea: peers write to the region itself if the adapter can register it. If it
// can't, as with a file on a DAX file system without on-demand paging, they
// write to a shadow in memory, and flushes copy from there
// (shadow_persistence.h).
//
// Thread safety: one thread.
#ifndef ALPHEUS_API_NODE_REPLICA_FILE_H_
#define ALPHEUS_API_NODE_REPLICA_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "log/pmem/shadow_persistence.h"
#include "recovery/protocol/messages.h"
#include "recovery/replica/local_replica.h"
#include "recovery/server/served_log.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/platform_declaration.h"

namespace alpheus {

// Identity that a replica must have to be served or opened.
struct ReplicaIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
};

struct ReplicaFileOptions {
  // Fabric through which peers will write to it; must outlive the calls only.
  // nullptr: none.
  fabric::Fabric* fabric = nullptr;
  uint32_t emulated_latency_ns = 0;
  // Function that persists pages of a plain file.
  MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
};

class ReplicaFile {
 public:
  // A list beside log/pmem/backends.h, whose macro can't expand to arguments.
  using Persistences = std::variant<std::unique_ptr<LibpmemPersistence>,
                                    std::unique_ptr<ShadowPersistence>,
                                    std::unique_ptr<MsyncPersistence>>;

  // Takes the lock, and tries whether the adapter can register the region; a
  // shadow is filled from the whole file. Errors: as Region::OpenForWriting.
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Open(
      const std::string& path, const ReplicaFileOptions& options = {});

  // Makes an empty replica of a new log, in the place of an existing one if the
  // format says so. Errors: as Region::Create, or Region::Replace;
  // InvalidArgument (size; the configuration does not name the node).
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Create(
      const std::string& path, const ReplicaIdentity& identity,
      const recovery::Format& format, const ReplicaFileOptions& options = {});

  // Puts what is left of a replica whose log is deleted in its place
  // (FormatRemoved): its records go in one step. Errors: as Region::Replace.
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> CreateRemoved(
      const std::string& path, const Superline& of,
      const ReplicaFileOptions& options = {});

  // Returns the replica as a node's server sees it; this must outlive that.
  // `suspect`: the medium failed before, and bytes that are read now may not be
  // on it (LocalReplica). Errors: as LocalReplica::Open; FailedPrecondition (of
  // another node).
  absl::StatusOr<std::unique_ptr<recovery::ServedLog>> Serve(
      const ReplicaIdentity& identity, bool suspect = false);

  // Returns true if the last persisted bytes may not be on the medium.
  bool medium_failed() const;
  // Starts again with a failed medium, without releasing the lock. Requires:
  // nothing that Serve returned is left.
  void ForgetFailure();

  // Gives up a region whose medium failed under a primary, so that nobody takes
  // it for good: its superline says `repairing` before the lock goes. If that
  // can't be written either, the lock stays until this process ends.
  static void GiveUpSuspect(Region region, const ReplicaIdentity& identity);

  replication::ReplicaMedium medium() const;
  // Returns a sentence on why peers write to a shadow, and its cost; empty if
  // they don't.
  const std::string& shadow() const { return shadow_; }
  Region& region() { return region_; }
  Persistences& pmem() { return pmem_; }

 private:
  ReplicaFile(Region region, std::string shadow,
              const ReplicaFileOptions& options);

  static absl::StatusOr<std::unique_ptr<ReplicaFile>> On(
      Region region, const ReplicaFileOptions& options);
  static Persistences NewPersistence(const Region& region,
                                     const ReplicaFileOptions& file);

  Region region_;
  const std::string shadow_;
  const ReplicaFileOptions options_;
  Persistences pmem_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_REPLICA_FILE_H_
