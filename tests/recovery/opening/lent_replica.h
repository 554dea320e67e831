// SPDX-License-Identifier: Apache-2.0
// lent_replica: a replica that somebody else keeps, for a ReplicaServer.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_RECOVERY_OPENING_LENT_REPLICA_H_
#define ALPHEUS_TESTS_RECOVERY_OPENING_LENT_REPLICA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/status_macros.h"
#include "recovery/replica/local_replica.h"
#include "recovery/server/served_log.h"
#include "replication/session/backup_session.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::testing {

class LentReplica final : public recovery::ServedLog {
 public:
  using Model = model::ModelPersistence;

  LentReplica(Model& pmem, recovery::LocalReplica<Model>& replica)
      : pmem_(pmem), replica_(replica) {}

  Uuid log_id() const override { return replica_.superline().log_id; }
  recovery::ServerHello server_hello() const override {
    const Superline& own = replica_.superline();
    return {own.node, own.incarnation, own.ring_capacity, own.promised_epoch,
            own.configuration.id};
  }
  quorum::Promise current_promise() const override {
    return quorum::PromiseOf(replica_.superline());
  }
  recovery::Created created() const override {
    return recovery::CreatedOf(replica_.superline());
  }
  recovery::Followed followed() const override {
    recovery::Followed followed = recovery::FollowedOf(replica_);
    if (session_ == nullptr) return followed;
    followed.persisted_lsn = session_->persisted_lsn();
    followed.durable_lsn =
        std::max(followed.durable_lsn, session_->durable_lsn());
    return followed;
  }
  bool medium_failed() const override { return !pmem_.Error().ok(); }
  std::span<std::byte> ring() const override {
    return {replica_.ring().data(), replica_.ring().capacity()};
  }
  std::span<std::byte> region() const override { return replica_.region(); }
  absl::StatusOr<quorum::PromiseVerdict> AcceptPromise(
      const quorum::Promise& request) override {
    return replica_.AcceptPromise(request);
  }
  absl::Status StartStateReport(bool from_head) override {
    return replica_.StartStateReport(from_head);
  }
  recovery::StateReport TakeStateReport() override {
    return replica_.TakeStateReport();
  }
  absl::Status BeginRepair(Epoch epoch) override {
    return replica_.BeginRepair(epoch);
  }
  absl::Status RaiseCeiling(Epoch epoch, RingOffset ceiling) override {
    return replica_.RaiseCeiling(epoch, ceiling);
  }
  absl::Status StartInstall(
      const recovery::Installation& installation) override {
    return replica_.StartInstall(installation);
  }
  recovery::DeletionState deletion() const override {
    return {replica_.superline().deletion, replica_.superline().configuration};
  }
  absl::Status MarkDeleted(Deletion deletion) override {
    return replica_.MarkDeleted(deletion);
  }
  absl::StatusOr<bool> Continue(uint64_t bytes_max) override {
    return replica_.Continue(bytes_max);
  }
  void EndWork() override { replica_.EndWork(); }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    std::byte* const place = replica_.ring().At(offset);
    pmem_.Copy(place, bytes.data(), bytes.size());
    return Persist(pmem_, place, bytes.size()) ? absl::OkStatus()
                                               : pmem_.Error();
  }
  absl::StatusOr<int> RepairCopies() override {
    return replica_.RepairCopies();
  }
  absl::Status StartSession(const replication::SessionTerms& terms,
                            fabric::Fabric& fabric,
                            fabric::ConnectionId connection) override {
    ALPHEUS_ASSIGN_OR_RETURN(
        session_, replication::BackupSession<Model>::Start(
                      pmem_,
                      {replica_.region(), replica_.ring(), &replica_.table(),
                       replica_.superline().log_id,
                       [this](Epoch epoch, const RingBounds& bounds) {
                         return replica_.PublishBounds(epoch, bounds);
                       }},
                      terms, fabric, connection));
    return absl::OkStatus();
  }
  absl::Status OnCompletion(const fabric::Completion& completion) override {
    return session_->OnCompletion(completion);
  }
  absl::Status Step() override { return session_->Step(); }
  bool has_more() const override { return session_->has_more(); }
  std::string TakeNews() override { return session_->TakeNews(); }
  absl::Status PersistWatermark() override {
    return session_->PersistWatermark();
  }
  void EndSession() override { session_.reset(); }

 private:
  Model& pmem_;
  recovery::LocalReplica<Model>& replica_;
  std::unique_ptr<replication::BackupSession<Model>> session_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_OPENING_LENT_REPLICA_H_
