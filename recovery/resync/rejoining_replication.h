// SPDX-License-Identifier: Apache-2.0
// rejoining_replication: the sink of a log whose backups may go and come back.
//
// Idea: LogReplication counts acknowledgements, Rejoining brings those back
// that it has given up; what arrives and is of no backup is Rejoining's, and
// what is not its either is somebody else's. A primary that has its node's own
// replica gives it up when the node says that somebody wants its promise
// (replica_hold.h): the log ends as when it is fenced. Until then it scrubs it
// (own_scrub.h), and shows its bytes to who repairs a replica by them.
//
// Invariants: those of replication_sink.h; RSK2 holds also for what a member on
// its way needs of the ring.
//   RJR1. The log has ended before the region is given up (RSK3): what is
//         persisted afterwards is in nobody's replica, and nothing is durable
//         by it.
//   RJR2. Of the own ring only what its replica has persisted, from the head
//         that was told on, is shown: no thread of the log writes there (but
//         for CLEANED words, which are kept out), and no power cut takes it
//         back.
// Thread safety: as ReplicationSink.
// References: protocol P-A5; rejoining.h, log_replication.h.
#ifndef ALPHEUS_RECOVERY_RESYNC_REJOINING_REPLICATION_H_
#define ALPHEUS_RECOVERY_RESYNC_REJOINING_REPLICATION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/base/mutex.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/protocol/scrub_counts.h"
#include "recovery/replica/held_replica.h"
#include "recovery/resync/rejoining.h"
#include "recovery/resync/replica_hold.h"
#include "recovery/scrub/own_scrub.h"
#include "recovery/scrub/scrubbing.h"
#include "replication/primary/log_replication.h"

namespace alpheus {

class RejoiningReplication final : public ReplicationSink,
                                   private LogReplication::Others {
 public:
  // Takes over the backups of `opened`, and its ring. `fabric`, `clock`,
  // `random` and `others` must outlive it, and so must the memory of the ring;
  // without `others` what they would get is dropped.
  RejoiningReplication(Fabric& fabric, const Clock& clock, RandomSource& random,
                       const Replicator::Options& replicator,
                       const RejoiningOptions& rejoining, EpochOpened& opened,
                       LogReplication::Others* others = nullptr);

  // The log's own replica is held from its node, as `hold` says, and scrubbed.
  // Before the log is made, whose Poll calls `replica`, which must outlive
  // this.
  void HoldReplica(ReplicaHoldOptions hold, const ScrubbingOptions& scrubbing,
                   HeldReplica& replica);

  void Advance(const RingEnd& finished) override;
  void LocalPersisted(Lsn lsn) override;
  void AdvanceHead(const LogPosition& head) override;
  void TellDurable() override { replication_.TellDurable(); }
  bool Poll() override;
  ReplicationState replication_state() const override;
  Lsn durable_lsn() const { return replication_.durable_lsn(); }
  absl::Status status() const override { return replication_.status(); }
  void WaitForActivity(Deadline deadline) override;
  void Wake() override { replication_.Wake(); }
  // As LogReplication::LookBy.
  Deadline LookBy(Deadline deadline) const;

  uint32_t in_sync() const { return replication_.in_sync(); }
  const Rejoining& rejoining() const { return rejoining_; }

  // What others may see of the own replica now (RJR2): for HoldReplica's node.
  // From inside Poll, or as it.
  Fetched Show(const Fetch& fetch) const;

  struct State {
    uint32_t in_sync = 0;
    Rejoining::Counters counters;
    std::vector<OtherMember> away;  // and why, as far as it was tried
    // Of the own replica, in passes that have ended.
    uint64_t scrub_passes = 0;
    ScrubCounts scrubbed;
  };
  // As of the last Poll. By any thread.
  State state() const {
    const MutexLock lock(state_mutex_);
    return state_;
  }

 private:
  void Rejoin();
  void NoteState();
  void NoteNextPoll();
  void AttendHold();
  void GiveWay(const Promise& wanted);
  void ScrubOn();
  void Take(const Completion& completion) override;
  void Take(const ConnectionEvent& event) override;

  Fabric& fabric_;
  const Clock& clock_;
  LogReplication::Others* const others_;
  const uint64_t replicas_;
  const std::unique_ptr<RegisteredBytes> ring_;
  Rejoining::Now now_;
  RingEnd persisted_;  // by the own replica, at least
  LogReplication replication_;
  const RejoinedLog log_;
  Rejoining rejoining_;
  // Until the region is given up.
  HeldReplica* replica_ = nullptr;
  std::unique_ptr<OwnScrub> scrub_;
  std::unique_ptr<ReplicaHold> hold_;
  // Of both, for those who wait without the log's lock.
  std::atomic<int64_t> next_poll_ns_;
  // in_sync and failures of state_, for who writes it.
  uint32_t noted_in_sync_ = 0;
  Rejoining::Counters noted_;
  mutable Mutex state_mutex_;
  State state_ ABSL_GUARDED_BY(state_mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RESYNC_REJOINING_REPLICATION_H_
