// SPDX-License-Identifier: Apache-2.0
// own_scrub: a primary scrubs its node's replica while it writes it.
//
// Idea: the node does not serve a replica that a primary has (P-A7), so the
// primary does what the node would do (scrubbing.h). It does so from inside
// Poll of its replication. No byte from the last announced head on is reused
// there. The primary's threads write elsewhere, except for CLEANED words. So
// each slice keeps cleaning threads out, and is short. Clients that ask the
// node hear of it by Claim (region_claim.h).
//
// Invariants: those of scrubbing.h.
// Thread safety: one thread at a time.
// References: protocol P-A7, P-A8;
// docs/design/reading_and_scrubbing.md#scrubbing.
#ifndef ALPHEUS_RECOVERY_SCRUB_OWN_SCRUB_H_
#define ALPHEUS_RECOVERY_SCRUB_OWN_SCRUB_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/polled.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "recovery/protocol/messages.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/scrub/scrubbed_replica.h"
#include "recovery/scrub/scrubbing.h"
#include "replication/fabric/fabric.h"

namespace alpheus::recovery {

class OwnScrub final : private ScrubbedReplica {
 public:
  // The log, as it stays while the epoch runs.
  struct Log {
    Uuid log_id;
    Configuration configuration;
    Epoch epoch;
    EpochTable table;
    Ring ring;
  };

  // `fabric`, `clock`, `replica` and the ring must outlive the object.
  OwnScrub(fabric::Fabric& fabric, const Clock& clock, Scrubbing::Node node,
           const ScrubbingOptions& options, Log log, PrimaryReplica& replica);

  // Takes what the fabric brought. Returns false for any other connection.
  bool OnConnectionEvent(const fabric::ConnectionEvent& event);
  bool OnCompletion(const fabric::Completion& completion);

  // Does a slice, if one is due. `head`: the last head that was announced to
  // the backups. `persisted`: the last LSN that this replica has persisted.
  // Returns kMoved if a pass has ended, and else kIdle.
  Polled Poll(const LogPosition& head, Lsn persisted);
  // Returns when Poll has something to do.
  Deadline NextPoll() const { return Deadline::AtNanos(next_poll_ns_); }

  // Starts a pass, as Scrubbing::Ask, but leaves appending threads nine tenths
  // of the time.
  void Start();
  Scrubbed State() const { return scrubbing_.StateOf(log_.log_id); }

 private:
  Uuid log_id() const override { return log_.log_id; }
  bool medium_failed() const override { return !replica_.IsUsable(); }
  std::span<std::byte> ring() const override {
    return {log_.ring.data(), log_.ring.capacity()};
  }
  std::span<std::byte> ring_on_medium() const override {
    return {replica_.RingOnMedium(), log_.ring.capacity()};
  }
  Followed followed() const override;
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    replica_.WithRingFrozen(work);
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    return replica_.RestoreBytes(offset, bytes);
  }
  absl::StatusOr<int> RepairCopies() override {
    return replica_.RepairCopies();
  }

  const Log log_;
  PrimaryReplica& replica_;
  const Clock& clock_;
  LogPosition head_;
  Lsn persisted_;
  int64_t next_poll_ns_ = 0;
  Scrubbing scrubbing_;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_SCRUB_OWN_SCRUB_H_
