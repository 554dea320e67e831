// SPDX-License-Identifier: Apache-2.0
// member_upkeep: keeps the members of a primary's log in sync, and its own
// replica whole.
//
// Idea: the Replicator is the sink that the log calls. This object observes it:
// at the end of each Poll ReplicaResync brings back the members that were
// dropped. An event that belongs to no backup of this log is offered to
// ReplicaResync, then to the scrub, the claim and `others`.
//
// A primary may have its node's own replica. It steps down when the node says
// that an opener wants that replica's promise (region_claim.h): the log ends as
// if it were fenced. Until then the primary scrubs the replica (own_scrub.h),
// and shows its bytes to peers that repair theirs.
//
// Invariants: those of replication_sink.h. RSK2 also covers the bytes that a
// joining member needs.
//   MUK1. The log has ended before the region is released (RSK3). A thread of
//         the log may still store bytes afterwards: they are in no replica, and
//         make nothing durable.
//   MUK2. Only bytes of the own ring from the last announced head up to the
//         last persisted record are shown. The log's threads write nothing
//         there meanwhile: WithRingFrozen keeps out even CLEANED words. And no
//         power cut undoes these bytes.
// Thread safety: as Replicator; state() from any thread.
// Called under: step_mutex_ of the log (replicator.h), except for state().
// Meanwhile no thread of the log steps, so each piece of work is short.
// May block: OnPoll, when work is due. Usually none is, and it returns at once.
//   * Resync: page faults of the own ring, of which it compares a slice;
//     registering memory (fabric.h).
//   * Scrub, and bytes shown: the Reclaimer's lock, held for the slice, so that
//     cleaning threads and tails wait for it, and page faults. A repair also
//     waits for a fence (on a plain file: for the disk).
//   * Step down: the region lock of LogEngine, which a check of the file holds,
//     and the system call that replaces the mapping.
//   * State: state_mutex_, held for a copy.
// References: protocol P-A5; replica_resync.h, replicator.h.
#ifndef ALPHEUS_RECOVERY_RESYNC_MEMBER_UPKEEP_H_
#define ALPHEUS_RECOVERY_RESYNC_MEMBER_UPKEEP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "log/base/mutex.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/protocol/scrub_counts.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/resync/region_claim.h"
#include "recovery/resync/replica_resync.h"
#include "recovery/scrub/own_scrub.h"
#include "recovery/scrub/scrubbing.h"
#include "replication/primary/replicator.h"

namespace alpheus::recovery {

class MemberUpkeep final : private replication::Replicator::Observer {
 public:
  // Takes over the backups of `opened`, and its ring. `fabric`, `clock`,
  // `random`, `others` and the ring's memory must outlive the object. Without
  // `others`, events of other connections are dropped.
  MemberUpkeep(fabric::Fabric& fabric, const Clock& clock, RandomSource& random,
               const replication::Replicator::Options& replicator,
               const ResyncOptions& resync, EpochOpened& opened,
               replication::Replicator::Observer* others = nullptr);

  // Gives up all that rests on the promise of this epoch: the own replica has
  // promised the next one. Members that are dropped stay out, and the claim is
  // over. Events still go to `others`. Not from inside OnPoll.
  void Retire();

  // Returns the sink for the log.
  replication::Replicator& replicator() { return replicator_; }

  // Claims the log's own replica, as `claim` says, and scrubs it. Call it
  // before the log is made: the log's Poll calls `replica`, which must outlive
  // this object.
  void ClaimReplica(RegionClaimOptions claim, const ScrubbingOptions& scrubbing,
                    PrimaryReplica& replica);

  const ReplicaResync& resync() const { return resync_; }

  // Returns bytes of the own replica that others may see now (MUK2), for the
  // node of ClaimReplica. Called from inside Poll, or like Poll.
  Fetched Show(const Fetch& fetch) const;

  struct State {
    uint32_t in_sync = 0;
    bool has_failed = false;
    ReplicaResync::Counters counters;
    std::vector<OtherMember>
        out_of_sync;  // with the reason, once one was tried
    // Backups by the names that DescribePeer gives.
    std::vector<replication::Replicator::SyncedBackup> synced;
    // Scrubbing of the own replica, in passes that have ended.
    uint64_t scrub_passes = 0;
    ScrubCounts scrubbed;
  };
  // Returns the state as of the last Poll. Any thread may call it.
  State state() const {
    const MutexLock lock(state_mutex_);
    return state_;
  }

 private:
  void Resync();
  void NoteState();
  void NoteNextPoll();
  void PollClaim();
  void StepDown(const quorum::Promise& wanted);
  void ContinueScrub();
  const RingBounds& Bounds() const;
  void OnCompletion(const fabric::Completion& completion) override;
  void OnConnectionEvent(const fabric::ConnectionEvent& event) override;
  Polled OnPoll(Polled polled) override;

  fabric::Fabric& fabric_;
  const Clock& clock_;
  replication::Replicator::Observer* const others_;
  const uint64_t replicas_;
  const std::unique_ptr<replication::RegisteredBytes> ring_;
  const RingBounds first_bounds_;  // with which the log was opened
  replication::Replicator replicator_;
  const ResyncSource log_;
  ReplicaResync resync_;
  // The three below: set until the region is released.
  PrimaryReplica* replica_ = nullptr;
  std::unique_ptr<OwnScrub> scrub_;
  std::unique_ptr<RegionClaim> claim_;
  // Copies of in_sync and counters in state_, for the thread that writes it.
  uint32_t noted_in_sync_ = 0;
  ReplicaResync::Counters noted_;
  bool noted_failed_ = false;
  mutable Mutex state_mutex_;
  State state_ ABSL_GUARDED_BY(state_mutex_);
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_RESYNC_MEMBER_UPKEEP_H_
