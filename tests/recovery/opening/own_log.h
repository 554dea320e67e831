// SPDX-License-Identifier: Apache-2.0
// own_log: a primary's log as its upkeep sees it, without a lock that could be
// given up.
#ifndef ALPHEUS_TESTS_RECOVERY_OPENING_OWN_LOG_H_
#define ALPHEUS_TESTS_RECOVERY_OPENING_OWN_LOG_H_

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/resync/region_claim.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {

class OwnLog final : public recovery::PrimaryReplica {
 public:
  explicit OwnLog(OpeningWorld::Primary& primary) : primary_(primary) {}

  absl::Status ReleaseRegion() override { return absl::OkStatus(); }
  bool IsUsable() const override { return primary_.log->IsUsable(); }
  std::byte* RingOnMedium() const override {
    return primary_.log->RingOnMedium();
  }
  void WithRingFrozen(absl::FunctionRef<void()> work) override {
    ++freezes_;
    primary_.log->WithRingFrozen(work);
  }
  // How often others had to wait.
  int freezes() const { return freezes_; }
  absl::Status RestoreBytes(RingOffset offset,
                            std::span<const std::byte> bytes) override {
    return primary_.log->RestoreBytes(offset, bytes);
  }
  absl::StatusOr<int> RepairCopies() override {
    return primary_.log->RepairCopies();
  }

 private:
  OpeningWorld::Primary& primary_;
  int freezes_ = 0;
};

// A claim of the primary's replica of which no node hears.
inline recovery::RegionClaimOptions ClaimHeardByNobody(
    const OpeningWorld::Primary& primary) {
  recovery::RegionClaimOptions claim;
  claim.address = "sim:9:1";
  claim.node = NodeId(static_cast<uint64_t>(primary.host) + 1);
  claim.hello = {primary.asked.cluster_id, primary.asked.log_id,
                 primary.asked.self};
  claim.promise = {primary.opened->epoch, primary.asked.self};
  return claim;
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_OPENING_OWN_LOG_H_
