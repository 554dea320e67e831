// SPDX-License-Identifier: Apache-2.0
// replica_file: a replica's region, its lock, and the persistence that its
// medium calls for.
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
#include "recovery/messages.h"
#include "recovery/replica.h"
#include "recovery/served_log.h"

namespace alpheus {

// What a replica must be of, to be served or opened.
struct ReplicaIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
};

class ReplicaFile {
 public:
  using Persistences = std::variant<std::unique_ptr<LibpmemPersistence>,
                                    std::unique_ptr<MsyncPersistence>>;

  // Takes the lock. Errors: as Region::OpenForWriting.
  // `sync` is what persists pages of a plain file.
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Open(
      const std::string& path, uint32_t emulated_latency_ns = 0,
      MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages);

  // Makes an empty replica of a new log. Errors: as Region::Create;
  // InvalidArgument (size; the configuration does not name the node).
  static absl::StatusOr<std::unique_ptr<ReplicaFile>> Create(
      const std::string& path, const ReplicaIdentity& identity,
      const Format& format,
      MsyncPersistence::SyncFunction sync = MsyncPersistence::SyncPages);

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

  // Mapped persistent memory, or what stands for it; else a plain file.
  bool is_pmem() const { return region_.medium() != RegionMedium::kFile; }
  Region& region() { return region_; }
  Persistences& pmem() { return pmem_; }

 private:
  ReplicaFile(Region region, uint32_t emulated_latency_ns,
              MsyncPersistence::SyncFunction sync);

  Persistences NewPersistence() const;

  Region region_;
  const uint32_t emulated_latency_ns_;
  const MsyncPersistence::SyncFunction sync_;
  Persistences pmem_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_NODE_REPLICA_FILE_H_
