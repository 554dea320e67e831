// SPDX-License-Identifier: Apache-2.0
// replica_upkeep: upkeep of a replica's region beside the log: nodes scrub it,
// and so do primaries, which release it to an opener.
//
// Thread safety: one thread.
// References: protocol P-A7, P-A8;
// docs/design/reading_and_scrubbing.md#scrubbing, primary_replica.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_REPLICA_UPKEEP_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_REPLICA_UPKEEP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "log/core/ring/ring_log.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/replica/openers_replica.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/resync/epoch_succession.h"
#include "recovery/scrub/scrubbing.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Returns the scrubbing options of a process that knows the members by that
// list. Without background scrubbing, only on request.
recovery::ScrubbingOptions ScrubbingOf(const World& world,
                                       const MemberList& list);

// Region of a primary, and its log, like LogEngine of api/log.
class OwnRegion final : public recovery::PrimaryReplica,
                        public recovery::SucceedingLog {
 public:
  // Hears of the openings of a log that goes on.
  struct Listener {
    std::function<void()> begins;
    // The log goes on in that epoch; nobody has reserved anything in it.
    std::function<void(const recovery::EpochOpened& opened)> goes_on;
  };

  using Log = RingLog<World::Model>;

  // `pmem` is the machine's, while the primary has the region. A log exists
  // before anything is called.
  OwnRegion(World& world, World::Machine& machine, World::Model& pmem,
            const std::unique_ptr<Log>& log, Listener listener)
      : world_(world),
        machine_(machine),
        pmem_(pmem),
        log_(log),
        listener_(std::move(listener)) {}

  absl::Status ReleaseRegion() override;
  bool IsUsable() const override { return log_->IsUsable(); }
  std::byte* RingOnMedium() const override { return log_->RingOnMedium(); }
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    log_->WithRingFrozen(work);
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override;
  absl::StatusOr<int> RepairCopies() override;

  bool TryHold() override { return log_->TryHold(); }
  bool IsAtRest() const override { return log_->IsAtRest(); }
  bool HasRoomForEpoch() const override { return log_->HasRoomForEpoch(); }
  void HandRegion() override { log_->HandRegion(); }
  absl::Status Continue(const recovery::EpochOpened& opened) override;
  void Resume() override { log_->Resume(); }
  absl::Status MediumError() const override { return log_->MediumError(); }
  absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>> OpenReplica(
      std::function<void()> fence) override;

 private:
  World& world_;
  World::Machine& machine_;
  World::Model& pmem_;
  const std::unique_ptr<Log>& log_;
  const Listener listener_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_REPLICA_UPKEEP_H_
