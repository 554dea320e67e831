// SPDX-License-Identifier: Apache-2.0
// served_log: one log as the server of its replica sees it, whatever medium it
// lies on.
//
// Idea: a node may keep logs on several media, and the process that writes a
// log serves its own replica too (P-A7). The server knows promises, phases and
// connections, and calls this; ServedReplica is a replica of which nothing else
// is made than a backup.
//
// Thread safety: one thread.
// References: protocol P-A4, P-A7; replica.h, backup_session.h.
#ifndef ALPHEUS_RECOVERY_SERVED_LOG_H_
#define ALPHEUS_RECOVERY_SERVED_LOG_H_

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
#include "log/pmem/landing_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "log/pmem/persistence.h"
#include "quorum/promise.h"
#include "recovery/answer.h"
#include "recovery/messages.h"
#include "recovery/replica.h"
#include "recovery/scrubbed_replica.h"
#include "replication/backup_session.h"
#include "replication/fabric/fabric.h"
#include "replication/session_terms.h"

namespace alpheus {

class ServedLog : public ScrubbedReplica {
 public:
  uint64_t incarnation() const final { return welcome().incarnation; }
  // But for the platform, which is the server's.
  virtual Welcome welcome() const = 0;
  // What peers write to is persistent memory, of which the platform is true;
  // else pages of a plain file, or a copy in memory, from which a call of the
  // replica's program persists.
  virtual bool is_persistent_memory() const { return true; }
  virtual Promise standing() const = 0;
  // All members that its superline knows of, and whether it is of any use.
  virtual Created created() const = 0;
  // The ring, which peers read and write, and what the region says of itself
  // before it.
  virtual std::span<std::byte> region() const = 0;

  // As those of Replica.
  virtual absl::StatusOr<PromiseVerdict> AcceptPromise(
      const Promise& request) = 0;
  virtual absl::Status StartAnswer() = 0;
  virtual Answer TakeAnswer() = 0;
  virtual absl::Status BeginRepair(Epoch epoch) = 0;
  virtual absl::Status StartInstall(const Installation& installation) = 0;
  virtual absl::StatusOr<bool> Continue(uint64_t bytes_max) = 0;
  virtual void EndWork() = 0;

  // The session of the epoch that was installed; one at a time. Take, Step,
  // has_more, TakeNews and PersistWatermark as those of BackupSession.
  // Requires, for all but StartSession and EndSession: it was started and not
  // ended.
  virtual absl::Status StartSession(const SessionTerms& terms, Fabric& fabric,
                                    ConnectionId connection) = 0;
  virtual absl::Status Take(const Completion& completion) = 0;
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

  // Creates and formats the region. One that is replaced (Format) is not served
  // any more, and nothing of its ServedLog is left; it is replaced atomically,
  // or after an error is there as before, and may be served again.
  // Errors: AlreadyExists (one is there, and is not to be replaced);
  // InvalidArgument (the configuration does not name this node; the size);
  // the medium's.
  virtual absl::StatusOr<std::unique_ptr<ServedLog>> Create(
      Uuid log_id, const Format& format) = 0;
};

// What a replica's superline says to who connects.
inline Welcome WelcomeOf(const Superline& superline) {
  return {superline.node, superline.incarnation, superline.ring_capacity,
          superline.promised_epoch, superline.configuration.id};
}

inline Created CreatedOf(const Superline& superline) {
  const bool is_used = superline.promised_epoch != Epoch() ||
                       superline.log_epoch != Epoch() || IsBlank(superline);
  return {superline.configuration, is_used};
}

// The same of a region that another process has, which may be writing it: one
// copy of the superline is whole. None if that can't be read, or is of another
// cluster, log or node.
std::optional<Welcome> WelcomeOfHeld(std::span<std::byte> region,
                                     Uuid cluster_id, Uuid log_id, NodeId node);

// What a replica's superline says, of itself and of its records.
Followed FollowedOf(const Superline& superline);

// The same of a region that another process has, with its watermarks, as
// WelcomeOfHeld.
std::optional<Followed> FollowedOfHeld(std::span<std::byte> region,
                                       Uuid cluster_id, Uuid log_id,
                                       NodeId node);

// What a replica's superline, table and watermarks say.
template <Persistence P>
Followed FollowedOf(const Replica<P>& replica) {
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
  // `pmem` must outlive it.
  ServedReplica(P& pmem, std::unique_ptr<Replica<P>> replica)
      : pmem_(pmem), replica_(std::move(replica)) {}

  Uuid log_id() const override { return replica_->superline().log_id; }
  Welcome welcome() const override;
  bool is_persistent_memory() const override {
    return !std::is_same_v<P, MsyncPersistence> &&
           !std::is_same_v<P, LandingPersistence>;
  }
  Promise standing() const override { return PromiseOf(replica_->superline()); }
  Created created() const override { return CreatedOf(replica_->superline()); }
  bool medium_failed() const override { return !pmem_.Error().ok(); }
  Followed followed() const override;
  std::span<std::byte> ring() const override;
  std::span<std::byte> ring_on_medium() const override;
  std::span<std::byte> region() const override {
    return replica_->region().first(replica_->superline().region_bytes);
  }

  absl::StatusOr<PromiseVerdict> AcceptPromise(
      const Promise& request) override {
    return replica_->AcceptPromise(request);
  }
  absl::Status StartAnswer() override { return replica_->StartAnswer(); }
  Answer TakeAnswer() override { return replica_->TakeAnswer(); }
  absl::Status BeginRepair(Epoch epoch) override {
    end_.reset();
    return replica_->BeginRepair(epoch);
  }
  absl::Status StartInstall(const Installation& installation) override {
    end_.reset();
    return replica_->StartInstall(installation);
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    return replica_->Continue(bytes_max);
  }
  void EndWork() override { replica_->EndWork(); }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override;
  absl::StatusOr<int> MendCopies() override { return replica_->MendCopies(); }

  absl::Status StartSession(const SessionTerms& terms, Fabric& fabric,
                            ConnectionId connection) override;
  absl::Status Take(const Completion& completion) override {
    return session_->Take(completion);
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
  const std::unique_ptr<Replica<P>> replica_;
  Lsn durable_lsn_;                // known in sessions that have ended
  std::optional<RingOffset> end_;  // of the last session
  std::unique_ptr<BackupSession<P>> session_;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_SERVED_LOG_H_
