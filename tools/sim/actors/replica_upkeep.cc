// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/replica_upkeep.h"

#include "absl/strings/str_cat.h"
#include "recovery/replica/local_replica.h"
#include "tools/sim/actors/watched_replica.h"
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

// ND3 of api/node/hosted_logs.h: a process that takes a region over is not told
// that its medium has failed.
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

absl::Status OwnRegion::Continue(const recovery::EpochOpened& opened) {
  const absl::Status continued = log_->Continue(opened.start);
  if (continued.ok()) listener_.goes_on(opened);
  return continued;
}

absl::StatusOr<std::unique_ptr<recovery::OpenersReplica>>
OwnRegion::OpenReplica(std::function<void()> fence) {
  using Replica = recovery::LocalReplica<World::Model>;
  listener_.begins();
  recovery::LocalReplicaOptions options;
  options.name = absl::StrCat("own replica of node ", machine_.id().value);
  options.expected_cluster_id = kClusterId;
  options.expected_log_id = kLogId;
  options.expected_node = machine_.id();
  options.read_whole_bytes_max = world_.options().read_whole_bytes_max;
  absl::StatusOr<std::unique_ptr<Replica>> replica =
      Replica::Open(pmem_, pmem_.region(), options);
  if (!replica.ok()) return replica.status();
  std::unique_ptr<recovery::OpenersReplica> own =
      std::make_unique<recovery::OwningOpenersReplica<World::Model>>(
          *std::move(replica), std::move(fence));
  return Watch(world_, machine_.number, std::move(own));
}

absl::StatusOr<int> OwnRegion::RepairCopies() {
  ++world_.counters().scrubs;
  ++world_.counters().own_scrubs;
  return log_->RepairCopies();
}

}  // namespace alpheus::sim
