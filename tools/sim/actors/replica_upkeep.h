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
#include <memory>
#include <span>

#include "log/core/ring/ring_log.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/scrub/scrubbing.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Returns the scrubbing options of a process that knows the members by that
// list. Without background scrubbing, only on request.
recovery::ScrubbingOptions ScrubbingOf(const World& world,
                                       const MemberList& list);

// Region of a primary, like LogEngine of api/log.
class OwnRegion final : public recovery::PrimaryReplica {
 public:
  using Log = RingLog<World::Model>;

  // `pmem` is the machine's, while the primary has the region. A log exists
  // before anything is called.
  OwnRegion(World& world, World::Machine& machine, World::Model& pmem,
            const std::unique_ptr<Log>& log)
      : world_(world), machine_(machine), pmem_(pmem), log_(log) {}

  absl::Status ReleaseRegion() override;
  bool IsUsable() const override { return log_->IsUsable(); }
  std::byte* RingOnMedium() const override { return log_->RingOnMedium(); }
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    log_->WithRingFrozen(work);
  }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override;
  absl::StatusOr<int> RepairCopies() override;

 private:
  World& world_;
  World::Machine& machine_;
  World::Model& pmem_;
  const std::unique_ptr<Log>& log_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_REPLICA_UPKEEP_H_
