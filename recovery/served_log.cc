// SPDX-License-Identifier: Apache-2.0
#include "recovery/served_log.h"

#include <algorithm>

#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/pmem/backends.h"

namespace alpheus {

namespace {

std::optional<Superline> SuperlineOfHeld(std::span<std::byte> region,
                                         Uuid cluster_id, Uuid log_id,
                                         NodeId node) {
  if (region.size() < kTableOffset) return std::nullopt;
  const CellState cell = ReadCell(SuperlinePlace(region));
  if (!cell.newest) return std::nullopt;
  const absl::StatusOr<Superline> superline =
      DecodeSuperline(cell.copies[*cell.newest].content);
  if (!superline.ok() || superline->cluster_id != cluster_id ||
      superline->log_id != log_id || superline->node != node) {
    return std::nullopt;
  }
  return *superline;
}

}  // namespace

std::optional<Welcome> WelcomeOfHeld(std::span<std::byte> region,
                                     Uuid cluster_id, Uuid log_id,
                                     NodeId node) {
  const std::optional<Superline> superline =
      SuperlineOfHeld(region, cluster_id, log_id, node);
  if (!superline) return std::nullopt;
  return WelcomeOf(*superline);
}

Followed FollowedOf(const Superline& superline) {
  Followed followed;
  followed.log_epoch = superline.log_epoch;
  followed.repairing = superline.repairing;
  followed.replica_count = superline.configuration.replica_count;
  followed.write_quorum = superline.configuration.write_quorum;
  followed.configuration_id = superline.configuration.id;
  followed.promised = PromiseOf(superline);
  followed.head = {superline.head_lsn, superline.head_offset,
                   superline.head_chain};
  followed.durable_lsn = superline.head_lsn - 1;
  return followed;
}

std::optional<Followed> FollowedOfHeld(std::span<std::byte> region,
                                       Uuid cluster_id, Uuid log_id,
                                       NodeId node) {
  const std::optional<Superline> superline =
      SuperlineOfHeld(region, cluster_id, log_id, node);
  if (!superline) return std::nullopt;
  Followed followed = FollowedOf(*superline);
  followed.persisted_lsn =
      ReadWatermarks(region, log_id).Proven(superline->log_epoch);
  followed.is_held = true;
  return followed;
}

template <Persistence P>
Welcome ServedReplica<P>::welcome() const {
  return WelcomeOf(replica_->superline());
}

// What was durable once stays so, whoever has become primary since (P-C1).
template <Persistence P>
Followed ServedReplica<P>::followed() const {
  Followed followed = FollowedOf(*replica_);
  followed.durable_lsn = std::max(followed.durable_lsn, durable_lsn_);
  if (end_ && *end_ >= followed.head.offset) followed.end = end_;
  if (session_ == nullptr) return followed;
  followed.in_session = true;
  followed.end = session_->next().offset;
  followed.persisted_lsn = session_->persisted_lsn();
  followed.durable_lsn =
      std::max(followed.durable_lsn, session_->durable_lsn());
  return followed;
}

template <Persistence P>
void ServedReplica<P>::EndSession() {
  if (session_ == nullptr) return;
  durable_lsn_ = std::max(durable_lsn_, session_->durable_lsn());
  end_ = session_->next().offset;
  session_.reset();
}

template <Persistence P>
absl::Status ServedReplica<P>::RestoreBytes(RingOffset offset,
                                            std::span<const std::byte> bytes) {
  std::byte* const place = replica_->ring().At(offset);
  pmem_.Copy(place, bytes.data(), bytes.size());
  return Persist(pmem_, place, bytes.size()) ? absl::OkStatus() : pmem_.Error();
}

template <Persistence P>
std::span<std::byte> ServedReplica<P>::ring() const {
  const Ring ring = replica_->ring();
  return {ring.data(), ring.capacity()};
}

template <Persistence P>
std::span<std::byte> ServedReplica<P>::ring_on_medium() const {
  const Ring ring = replica_->ring();
  return {OnMedium(pmem_, ring.data()), ring.capacity()};
}

template <Persistence P>
absl::Status ServedReplica<P>::StartSession(const SessionTerms& terms,
                                            Fabric& fabric,
                                            ConnectionId connection) {
  const ReplicaMemory memory{replica_->region(), replica_->ring(),
                             &replica_->table(), log_id(),
                             [this](Epoch epoch, const LogPosition& head) {
                               return replica_->PublishHead(epoch, head);
                             }};
  ALPHEUS_ASSIGN_OR_RETURN(
      session_,
      BackupSession<P>::Start(pmem_, memory, terms, fabric, connection));
  return absl::OkStatus();
}

ALPHEUS_INSTANTIATE_CLASS(ServedReplica);

}  // namespace alpheus
