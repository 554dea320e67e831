// SPDX-License-Identifier: Apache-2.0
// local_durability: durability of a log whose only replica is its own region.
//
// Idea: the Forcer is all there is. No ack has to be processed, and a call that
// waits sleeps on Progress.
//
// Thread safety: as log_durability.h.
// References: Arcadia §4.3; protocol P-A3.8; log_durability.h.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_LOCAL_DURABILITY_H_
#define ALPHEUS_LOG_CORE_DURABILITY_LOCAL_DURABILITY_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "log/base/ids.h"
#include "log/core/durability/durable_callbacks.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/log_durability.h"
#include "log/pmem/persistence.h"

namespace alpheus {

// The forcer. LogDurability uses it, so it is made before that base class.
template <Persistence P>
struct LocalForcing {
  LocalForcing(const LogDurabilityParts<P>& parts,
               const LogDurabilityStart& start)
      : own_forcer(parts.pmem, parts.region, parts.ring, start.log_id,
                   start.log_epoch, start.last, start.end, parts.tracker,
                   parts.index, parts.progress, parts.failure) {}

  Forcer<P> own_forcer;
  // A local log needs no rounds: see ConfirmEpoch.
  const std::atomic<uint64_t> no_rounds{0};
};

template <Persistence P>
class LocalDurability final : private LocalForcing<P>, public LogDurability<P> {
 public:
  using typename LogDurability<P>::Attempt;
  using typename LogDurability<P>::Progressed;

  LocalDurability(const LogDurabilityParts<P>& parts,
                  const LogDurabilityStart& start)
      : LocalForcing<P>(parts, start),
        LogDurability<P>(parts, own_forcer,
                         {.own_replica = own_forcer.durable_lsn_word(),
                          .quorum = own_forcer.durable_lsn_word(),
                          .all_in_sync = own_forcer.durable_lsn_word(),
                          .confirmed_round = no_rounds},
                         /*is_replicated=*/false) {}

  const std::atomic<uint64_t>& reuse_limit_word() const override {
    return parts().reclaimer.reuse_limit_word();
  }

  Progressed Step(Lsn lsn) override { return own_forcer.Step(lsn); }
  void Poll() override {}
  void AnnounceHead() override {}
  bool AnnounceDurable() override { return true; }
  bool AwaitsBackups() const override { return false; }
  bool AreBackupsIdle() const override { return true; }

  absl::Status BeginForce(Lsn lsn) override {
    return this->IsDurable(Step(lsn)).status();
  }
  absl::Status WaitHeadDurable(Deadline /*deadline*/) override {
    return absl::OkStatus();
  }
  // The region's lock is the fence of a local log: nobody else opens an epoch
  // while this process has it (P-A3.8).
  absl::Status ConfirmEpoch(Deadline /*deadline*/) override {
    return parts().failure.failed() ? parts().failure.status()
                                    : absl::OkStatus();
  }
  void OnEpochConfirmed(DurableCallback callback) override {
    callback(ConfirmEpoch(Deadline()));
  }
  absl::Status WaitFor(const char* call, Deadline deadline,
                       Attempt step) override {
    return this->LoopUntilDone(
        call, deadline, step,
        [this](uint32_t seen, Deadline until) { WaitForWork(seen, until); });
  }

  void WaitForWork(uint32_t seen, Deadline deadline) override {
    parts().progress.Wait(seen, deadline);
  }
  bool WaitForAcks(Deadline /*deadline*/,
                   const std::atomic<uint32_t>& /*stop*/) override {
    return false;
  }

 private:
  using LocalForcing<P>::no_rounds;
  using LocalForcing<P>::own_forcer;
  using LogDurability<P>::parts;

  void CallAckPollerIfNeeded() override {}
  void AnnounceIdle() override {}
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_LOCAL_DURABILITY_H_
