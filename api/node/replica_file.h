// SPDX-License-Identifier: Apache-2.0
// replica_file: a replica's region, its lock, and the persistence that its
// medium and the adapter call for.
//
// Idea: peers write to the region itself if the adapter can register it. If it
// can't, as with a file on a DAX file system and no on-demand paging, they
// write to a copy in memory, and flushes copy from there
// (landing_persistence.h).
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
#include "log/pmem/landing_persistence.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/region.h"
#include "recovery/protocol/messages.h"
#include "recovery/replica/replica.h"
#include "recovery/server/served_log.h"
#include "replication/fabric/fabric.h"
#include "replication/persist/platform/declaration.h"

namespace alpheus {

// What a replica must be of, to be served or opened.
struct ReplicaIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
};

struct ReplicaFileOptions {
  // By which peers are to write to it, and which must outlive the calls only;
  // nullptr: none are.
  Fabric* fabric = nullptr;
  uint32_t emulated_latency_ns = 0;
  // What persists pages of a plain file.
  MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages;
};

class ReplicaFile {
 public:
  using Persistences = std::variant<std::unique_ptr<LibpmemPersistence>,
                                    std::unique_ptr<LandingPersistence>,
                                    std::unique_ptr<MsyncPersistence>>;

  // Takes the lock, and tries what the adapter can register; a copy in memory
  // is read from the whole file. Errors: as Region::OpenForWriting.
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Open(
      const std::string& path, const ReplicaFileOptions& options = {});

  // Makes an empty replica of a new log, in the place of the one that is there
  // if the format says so. Errors: as Region::Create, or Region::Replace;
  // InvalidArgument (size; the configuration does not name the node).
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Create(
      const std::string& path, const ReplicaIdentity& identity,
      const Format& format, const ReplicaFileOptions& options = {});

  // A server of backups for it, which this must outlive. `suspect`: its medium
  // failed before, and what is read now may not be on it (Replica).
  // Errors: as Replica::Open; FailedPrecondition (of another node).
  absl::StatusOr<std::unique_ptr<ServedLog>> Serve(
      const ReplicaIdentity& identity, bool suspect = false);

  // True if what was persisted last may not be on the medium.
  bool medium_failed() const;
  // Begins anew with a medium that failed, without letting go of the lock.
  // Requires: nothing that Serve returned is left.
  void ForgetFailure();

  ReplicaMedium medium() const;
  // A sentence on why peers write to a copy in memory, and what it costs; empty
  // if they don't.
  const std::string& landing() const { return landing_; }
  Region& region() { return region_; }
  Persistences& pmem() { return pmem_; }

 private:
  ReplicaFile(Region region, std::string landing,
              const ReplicaFileOptions& options);

  static absl::StatusOr<std::unique_ptr<ReplicaFile>> On(
      Region region, const ReplicaFileOptions& options);
  static Persistences NewPersistence(const Region& region,
                                     const ReplicaFileOptions& file);

  Region region_;
  const std::string landing_;
  const ReplicaFileOptions options_;
  Persistences pmem_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_REPLICA_FILE_H_
