// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/served_log.h"

#include <algorithm>

#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/pmem/backends.h"

namespace alpheus::recovery {

template <Persistence P>
ServerHello ServedReplica<P>::server_hello() const {
  return ServerHelloOf(replica_->superline());
}

// Durable records stay durable, whichever primary came since (P-C1).
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
absl::Status ServedReplica<P>::StartSession(
    const replication::SessionTerms& terms, fabric::Fabric& fabric,
    fabric::ConnectionId connection) {
  const replication::BackupMemory memory{
      replica_->region(), replica_->ring(), &replica_->table(), log_id(),
      [this](Epoch epoch, const RingBounds& bounds) {
        return replica_->PublishBounds(epoch, bounds);
      }};
  ALPHEUS_ASSIGN_OR_RETURN(
      session_, replication::BackupSession<P>::Start(pmem_, memory, terms,
                                                     fabric, connection));
  return absl::OkStatus();
}

ALPHEUS_INSTANTIATE_CLASS(ServedReplica);

}  // namespace alpheus::recovery
