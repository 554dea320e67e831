// SPDX-License-Identifier: Apache-2.0
// rejoining_replication: the replication of a log whose backups may go and come
// back.
//
// Idea: the Replicator is the sink that the log calls. This object observes it:
// at the end of its polls Rejoining brings back the members that it gave up. An
// event of no backup is offered to Rejoining, then to `others`. A primary may
// have its node's own replica. It steps down when the node says that an opener
// wants that replica's promise (replica_hold.h): the log ends as if it were
// fenced. Until then the primary scrubs the replica (own_scrub.h), and shows
// its bytes to peers that repair theirs.
//
// Invariants: those of replication_sink.h. RSK2 also covers the bytes that a
// joining member needs.
//   RJR1. The log has ended before the region is given up (RSK3). Bytes
//         persisted afterwards are in nobody's replica, and make nothing
//         durable.
//   RJR2. Bytes of the own ring are shown only from the head that was told on,
//         up to what its replica has persisted. No thread of the log writes
//         there (except for CLEANED words, which are kept out), and no power
//         cut undoes them.
// Thread safety: as Replicator; state() from any thread.
// References: protocol P-A5; rejoining.h, replicator.h.
#ifndef ALPHEUS_RECOVERY_RESYNC_REJOINING_REPLICATION_H_
#define ALPHEUS_RECOVERY_RESYNC_REJOINING_REPLICATION_H_

#include <cstdint>
#include <memory>
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
#include "replication/primary/replicator.h"

namespace alpheus {

class RejoiningReplication final : private Replicator::Observer {
 public:
  // Takes over the backups of `opened`, and its ring. `fabric`, `clock`,
  // `random`, `others` and the ring's memory must outlive the object. Without
  // `others`, events of other connections are dropped.
  RejoiningReplication(Fabric& fabric, const Clock& clock, RandomSource& random,
                       const Replicator::Options& replicator,
                       const RejoiningOptions& rejoining, EpochOpened& opened,
                       Replicator::Observer* others = nullptr);

  // Returns the sink for the log.
  Replicator& replicator() { return replicator_; }

  // Holds the log's own replica, as `hold` says, and scrubs it. Call it before
  // the log is made: the log's Poll calls `replica`, which must outlive this
  // object.
  void HoldReplica(ReplicaHoldOptions hold, const ScrubbingOptions& scrubbing,
                   HeldReplica& replica);

  const Rejoining& rejoining() const { return rejoining_; }

  // Returns bytes of the own replica that others may see now (RJR2), for the
  // node of HoldReplica. Called from inside Poll, or like Poll.
  Fetched Show(const Fetch& fetch) const;

  struct State {
    uint32_t in_sync = 0;
    Rejoining::Counters counters;
    std::vector<OtherMember> away;  // with the reason, once one was tried
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
  void Rejoin();
  void NoteState();
  void NoteNextPoll();
  void AttendHold();
  void GiveWay(const Promise& wanted);
  void ScrubOn();
  LogPosition Head() const;
  void Take(const Completion& completion) override;
  void Take(const ConnectionEvent& event) override;
  Polled OnPoll(Polled polled) override;

  Fabric& fabric_;
  const Clock& clock_;
  Replicator::Observer* const others_;
  const uint64_t replicas_;
  const std::unique_ptr<RegisteredBytes> ring_;
  const LogPosition first_head_;  // with which the log was opened
  Replicator replicator_;
  const RejoinedLog log_;
  Rejoining rejoining_;
  // The three below: set until the region is given up.
  HeldReplica* replica_ = nullptr;
  std::unique_ptr<OwnScrub> scrub_;
  std::unique_ptr<ReplicaHold> hold_;
  // Copies of in_sync and counters in state_, for the thread that writes it.
  uint32_t noted_in_sync_ = 0;
  Rejoining::Counters noted_;
  mutable Mutex state_mutex_;
  State state_ ABSL_GUARDED_BY(state_mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_RESYNC_REJOINING_REPLICATION_H_
