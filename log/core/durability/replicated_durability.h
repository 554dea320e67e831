// SPDX-License-Identifier: Apache-2.0
// replicated_durability: durability of a log that W replicas keep.
//
// Idea: a ReplicatedForcer drives the Forcer of the own replica. Each step
// processes acks. One of the calls that would sleep waits for acks
// (activity_watch.h); while no call waits, the log's own thread does.
//
// Invariants:
//   RDU1. While a call waits, the call processes acks, and the log's own thread
//         does not.
// Thread safety: as log_durability.h; WaitForAcks by the log's own thread.
// References: protocol P-A3.3, P-A3.8, P-F7; log_durability.h.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_DURABILITY_H_
#define ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_DURABILITY_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/base/waiter.h"
#include "log/core/durability/activity_watch.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/flush_order.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/log_durability.h"
#include "log/core/durability/replicated_forcer.h"
#include "log/core/durability/replication_sink.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// A replicated log has these, a local one does not. All must outlive the log.
struct ReplicationParts {
  ReplicationSink& sink;
  FlushOrder flush_order;
  ActivityWatch& watch;
};

// The forcers. LogDurability uses them, so they are made before that base
// class.
template <Persistence P>
struct ReplicatedForcing {
  ReplicatedForcing(const LogDurabilityParts<P>& parts,
                    const LogDurabilityStart& start,
                    const ReplicationParts& replication);

  // Progress of the forcer. No thread waits on it, since a record that is
  // persisted here alone is no news.
  Progress own_progress;
  Forcer<P> own_forcer;
  ReplicatedForcer<P> replicated_forcer;
};

template <Persistence P>
class ReplicatedDurability final : private ReplicatedForcing<P>,
                                   public LogDurability<P> {
 public:
  using typename LogDurability<P>::Attempt;
  using typename LogDurability<P>::Progressed;
  using Then = typename ReplicatedForcer<P>::Then;

  ReplicatedDurability(const LogDurabilityParts<P>& parts,
                       const LogDurabilityStart& start,
                       const ReplicationParts& replication);

  const std::atomic<uint64_t>& reuse_limit_word() const override {
    return replicated_forcer.reuse_limit_word();
  }

  Progressed Step(Lsn lsn) override { return Step(lsn, Then::kGoesOn); }
  Progressed StepBeforeWait(Lsn lsn) override {
    return Step(lsn, Then::kWaits);
  }
  void Poll() override { Poll(Lsn(0)); }
  void AnnounceHead() override {
    replicated_forcer.PollIfHeadMoved();
    RunCallbacks();
  }
  bool AnnounceDurable() override {
    const bool is_announced = replicated_forcer.AnnounceDurable();
    RunCallbacks();
    return is_announced;
  }
  bool AwaitsBackups() const override {
    return replicated_forcer.AwaitsBackups();
  }
  bool AreBackupsIdle() const override {
    return replicated_forcer.is_idle() || parts().failure.failed();
  }

  absl::Status BeginForce(Lsn lsn) override;
  absl::Status ConfirmEpoch(Deadline deadline) override;
  void OnEpochConfirmed(DurableCallback callback) override;
  absl::Status WaitHeadDurable(Deadline deadline) override;
  absl::Status WaitFor(const char* call, Deadline deadline,
                       Attempt step) override;

  void WaitForWork(uint32_t seen, Deadline deadline) override;
  bool WaitForAcks(Deadline deadline,
                   const std::atomic<uint32_t>& stop) override;

 private:
  using ReplicatedForcing<P>::own_forcer;
  using ReplicatedForcing<P>::replicated_forcer;
  using LogDurability<P>::parts;

  // Steps, and runs the callbacks that are due.
  Progressed Step(Lsn lsn, Then then);
  void Poll(Lsn lsn, Then then = Then::kGoesOn) {
    replicated_forcer.Poll(lsn, then);
    RunCallbacks();
  }
  // Only the durable LSN is news, which runs callbacks; a step may have moved
  // the other two. The fence of Poll is behind that.
  void RunCallbacks() { this->callbacks().OnProgress(); }
  // Returns true if a callback waits for a record that was offered to the
  // backups, or for a confirmation.
  bool HasCallbackOnItsWay() const {
    return this->callbacks().AreWaitingFor(replicated_forcer.offered_lsn()) ||
           this->callbacks().AreConfirming();
  }
  void CallAckPollerIfNeeded() override;
  void AnnounceIdle() override;

  ActivityWatch& watch_;
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_DURABILITY_H_
