// SPDX-License-Identifier: Apache-2.0
// served_log: one log as the server of its replica sees it, on whatever medium.
//
// Idea: a node may keep logs on several media, and the process that writes a
// log serves its own replica, too (P-A7). The server knows promises, phases and
// connections, and calls this. ServedReplica is a replica that is only ever a
// backup.
//
// Thread safety: one thread.
// May block: calls that change or read the replica, for its medium's fence (on
// a plain file: for the disk) and for page faults. Waits for no peer.
// References: protocol P-A4, P-A7; local_replica.h, backup_session.h.
#ifndef ALPHEUS_RECOVERY_SERVER_SERVED_LOG_H_
#define ALPHEUS_RECOVERY_SERVER_SERVED_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/layout.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/persistence.h"
#include "log/pmem/shadow_persistence.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/protocol/installation.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/state_report.h"
#include "recovery/protocol/superline_report.h"
#include "recovery/replica/local_replica.h"
#include "recovery/scrub/scrubbed_replica.h"
#include "replication/fabric/fabric.h"
#include "replication/session/backup_session.h"
#include "replication/session/session_terms.h"

namespace alpheus::recovery {

class ServedLog : public ScrubbedReplica {
 public:
  uint64_t incarnation() const final { return server_hello().incarnation; }
  // Returns the ServerHello, except for the platform, which is the server's.
  virtual ServerHello server_hello() const = 0;
  // Returns true if peers write to persistent memory, as the platform says.
  // False: they write to pages of a plain file, or to a copy in memory, from
  // which the replica's program persists.
  virtual bool is_persistent_memory() const { return true; }
  virtual quorum::Promise current_promise() const = 0;
  // Returns all members that its superline knows, and whether it was ever used.
  virtual Created created() const = 0;
  virtual DeletionState deletion() const = 0;
  // Returns the region: the ring, which peers read and write, and before it
  // superline, table and watermarks.
  virtual std::span<std::byte> region() const = 0;

  // The calls below are as those of LocalReplica.
  virtual absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request) = 0;
  virtual absl::Status StartStateReport(bool from_head) = 0;
  virtual StateReport TakeStateReport() = 0;
  virtual absl::Status BeginRepair(Epoch epoch) = 0;
  virtual absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) = 0;
  virtual absl::Status StartInstall(const Installation& installation) = 0;
  virtual absl::Status MarkDeleted(Deletion deletion) = 0;
  virtual absl::StatusOr<bool> Continue(uint64_t bytes_max) = 0;
  virtual void EndWork() = 0;

  // The session of the installed epoch; one at a time. OnCompletion, Step,
  // has_more, TakeNews and PersistWatermark are as those of BackupSession.
  // Requires, for all except StartSession and EndSession: a running session.
  virtual absl::Status StartSession(const replication::SessionTerms& terms,
                                    fabric::Fabric& fabric,
                                    fabric::ConnectionId connection) = 0;
  virtual absl::Status OnCompletion(const fabric::Completion& completion) = 0;
  virtual absl::Status Step() = 0;
  virtual bool has_more() const = 0;
  virtual std::string TakeNews() = 0;
  virtual absl::Status PersistWatermark() = 0;
  virtual void EndSession() = 0;
};

// Makes replicas of logs that this node does not keep yet.
class LogCreator {
 public:
  virtual ~LogCreator() = default;

  // Creates and formats the region. A replica that it replaces (Format) is not
  // served any more, and its ServedLog is destroyed. It is replaced atomically;
  // after an error it is there as before, and may be served again.
  // Errors: AlreadyExists (one is there, and is not to be replaced);
  // InvalidArgument (the configuration does not name this node; the size); the
  // medium's.
  virtual absl::StatusOr<std::unique_ptr<ServedLog>> Create(
      Uuid log_id, const Format& format) = 0;
  // Removes the records of a replica whose deletion is decided, and returns
  // what is left of it (FormatRemoved). The replica is not served any more, and
  // its ServedLog is destroyed. Its records go in one step; after an error it
  // is there as before, and may be served again. Errors: the medium's.
  virtual absl::StatusOr<std::unique_ptr<ServedLog>> RemoveRecords(
      Uuid log_id) = 0;
};

// Returns the state that superline, table and watermarks give.
template <Persistence P>
Followed FollowedOf(const LocalReplica<P>& replica) {
  const Superline& superline = replica.superline();
  Followed followed = FollowedOf(superline);
  followed.persisted_lsn = ReadWatermarks(replica.region(), superline.log_id)
                               .Proven(superline.log_epoch);
  followed.table = replica.table();
  return followed;
}

// A replica that is only ever a backup.
template <Persistence P>
class ServedReplica final : public ServedLog {
 public:
  // `pmem` must outlive the object.
  ServedReplica(P& pmem, std::unique_ptr<LocalReplica<P>> replica)
      : pmem_(pmem), replica_(std::move(replica)) {}

  Uuid log_id() const override { return replica_->superline().log_id; }
  ServerHello server_hello() const override;
  bool is_persistent_memory() const override {
    return !std::is_same_v<P, MsyncPersistence> &&
           !std::is_same_v<P, ShadowPersistence>;
  }
  quorum::Promise current_promise() const override {
    return quorum::PromiseOf(replica_->superline());
  }
  Created created() const override { return CreatedOf(replica_->superline()); }
  DeletionState deletion() const override {
    return {replica_->superline().deletion,
            replica_->superline().configuration};
  }
  bool medium_failed() const override { return !pmem_.Error().ok(); }
  Followed followed() const override;
  std::span<std::byte> ring() const override;
  std::span<std::byte> ring_on_medium() const override;
  std::span<std::byte> region() const override {
    return replica_->region().first(replica_->superline().region_bytes);
  }

  absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request) override {
    return replica_->AcceptPromise(request);
  }
  absl::Status StartStateReport(bool from_head) override {
    return replica_->StartStateReport(from_head);
  }
  StateReport TakeStateReport() override { return replica_->TakeStateReport(); }
  absl::Status BeginRepair(Epoch epoch) override {
    end_.reset();
    return replica_->BeginRepair(epoch);
  }
  absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) override {
    return replica_->RaiseCeiling(epoch, ceiling);
  }
  absl::Status StartInstall(const Installation& installation) override {
    end_.reset();
    return replica_->StartInstall(installation);
  }
  absl::Status MarkDeleted(Deletion deletion) override {
    return replica_->MarkDeleted(deletion);
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    return replica_->Continue(bytes_max);
  }
  void EndWork() override { replica_->EndWork(); }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override;
  absl::StatusOr<int> RepairCopies() override {
    return replica_->RepairCopies();
  }

  absl::Status StartSession(const replication::SessionTerms& terms,
                            fabric::Fabric& fabric,
                            fabric::ConnectionId connection) override;
  absl::Status OnCompletion(const fabric::Completion& completion) override {
    return session_->OnCompletion(completion);
  }
  absl::Status Step() override { return session_->Step(); }
  bool has_more() const override { return session_->has_more(); }
  std::string TakeNews() override { return session_->TakeNews(); }
  absl::Status PersistWatermark() override {
    return session_->PersistWatermark();
  }
  void EndSession() override;

 private:
  P& pmem_;
  const std::unique_ptr<LocalReplica<P>> replica_;
  Lsn durable_lsn_;                // from sessions that have ended
  std::optional<RingOffset> end_;  // end of the last session
  std::unique_ptr<replication::BackupSession<P>> session_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SERVER_SERVED_LOG_H_
