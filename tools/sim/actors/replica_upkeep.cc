// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/replica_upkeep.h"

#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

recovery::ScrubbingOptions ScrubbingOf(const World& world,
                                       const MemberList& list) {
  constexpr uint64_t kNanosPerSecond = 1'000'000'000;
  constexpr int64_t kPeerSilenceNanos = 2'000'000;
  const RunOptions& options = world.options();
  recovery::ScrubbingOptions scrubbing;
  if (!options.background_actors.scrub) return scrubbing;
  scrubbing.bytes_per_second = options.slice_bytes * kNanosPerSecond /
                               static_cast<uint64_t>(options.scrub_slice_ns);
  scrubbing.interval_ns = options.scrub_interval_ns;
  scrubbing.slice_bytes = options.slice_bytes;
  scrubbing.read_bytes = options.scrub_read_bytes;
  scrubbing.reply_timeout_ns = kPeerSilenceNanos;
  for (const int machine : list.machines) {
    scrubbing.peers.push_back({NodeId(static_cast<uint64_t>(machine) + 1),
                               world.NodeAddress(machine)});
  }
  return scrubbing;
}

// ND3 of api/node/node.h: a process that takes a region over is not told that
// its medium has failed.
absl::Status OwnRegion::ReleaseRegion() {
  if (!pmem_.Error().ok()) return pmem_.Error();
  if (world_.LeaveRegion(machine_)) return absl::OkStatus();
  return absl::UnavailableError("an adapter has bytes for the region");
}

absl::Status OwnRegion::RestoreBytes(RingOffset offset,
                                     std::span<const std::byte> bytes) {
  // Its own head may be further than the one by which it scrubs.
  const RepairChecker::Bounds bounds{log_->table(), Lsn(0),
                                     log_->next_lsn() - 1};
  return world_.checkers().repairs.Watch(
      machine_.number, bounds, offset, bytes,
      [this, offset](std::span<const std::byte> repaired) {
        return log_->RestoreBytes(offset, repaired);
      });
}

absl::StatusOr<int> OwnRegion::RepairCopies() {
  ++world_.counters().scrubs;
  ++world_.counters().own_scrubs;
  return log_->RepairCopies();
}

}  // namespace alpheus::sim
