// SPDX-License-Identifier: Apache-2.0
// epoch_succession: the sink of a log that may go on in a later epoch: it
// changes the members of a running log, whose users see a pause.
//
// Idea: members change only with an epoch (P-A5.3), so the primary opens the
// next one itself, for the same log object:
//
//   kRunning   MemberUpkeep keeps the members. A change is asked for
//   kDraining  new reservations wait; reserved records become durable
//   kOpening   all is durable and nobody writes the region: an EpochOpening
//              goes through all steps of P-A4 with the own replica
//   kResting   it failed after it had promised; the next try waits
//   kEnded     the log has ended, as if it were fenced
//
// The process that has the log asks for a change (Ask), or an operator does. An
// operator's AskChange comes through the node that has the claim of the own
// replica (region_claim.h), and the next claims tell the state of the change.
//
// In all phases the fabric is polled through MemberUpkeep, so that the old
// sessions live until a replica promises the next epoch. If the opening fails
// before the own replica promises, the log goes on with them.
//
// Invariants: those of replication_sink.h, over all epochs.
//   EPS1. An opening begins only while all that was reserved is durable and
//         nothing can be reserved. So no record has an unknown outcome,
//         whatever becomes of the opening (P-A5.4).
//   EPS2. Once the own replica has promised, nothing of the old epoch counts:
//         neither its acks, nor the end of its sessions, nor its claim. A
//         confirmation that is under way begins again in the next epoch.
//   EPS3. The log goes on only in an epoch that begins where the log ends.
//   EPS4. Before the own replica promises, a failed change costs only a pause;
//         but if the own medium has failed, the log ends, and nobody is told
//         that it goes on.
//         Afterwards, while no member can have the new list, an opening without
//         the change is tried before the log ends. Once a member may have it,
//         the change is tried again until open_ns are over, unless an error
//         says that another try is of no use.
//   EPS5. A pause is at most drain_ns, and then open_ns.
//   EPS6. A change that came with an id is begun once. Its outcome is told
//         until kOutcomesMax later ones have come.
//   EPS7. Each change that is asked for is done in the end. If the log has
//         ended before, nobody here can make it (kNobody).
//   EPS8. A change that is not from the running list is refused at once.
//   EPS9. The ballots of a change come from the membership, as for any opening:
//         from the register, where there is one. Each change has a source of
//         its own, and the first opening had another. BA3 (ballot.h) still
//         holds: the own replica promises a ballot at once (EO1), or refuses it
//         for a higher one, and each later ballot is above its promise.
//   EPS10. A change begins only if the epoch table has room for one more epoch.
//         All openings of a change need no more: each replaces the epoch of the
//         one before, as nothing is written in between.
// Crash states: those of EpochOpening. The process may end anywhere; the next
// opening finds all that was durable, and the lists as P-A5.3 says.
// Thread safety: as ReplicationSink; Ask, change and state from any thread.
// Called under: step_mutex_ of the log, as member_upkeep.h.
// May block: as MemberUpkeep, and in a change as EpochOpening: a slice of the
// own ring, and the fences of its replica.
// References: protocol P-A4, P-A5; docs/design/recovery.md, "While the log
// runs".
#ifndef ALPHEUS_RECOVERY_RESYNC_EPOCH_SUCCESSION_H_
#define ALPHEUS_RECOVERY_RESYNC_EPOCH_SUCCESSION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/mutex.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/ring/ring_log.h"
#include "log/core/space/ceiling.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "quorum/membership/membership.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/protocol/members_change.h"
#include "recovery/protocol/messages.h"
#include "recovery/replica/openers_replica.h"
#include "recovery/replica/primary_replica.h"
#include "recovery/resync/member_upkeep.h"
#include "recovery/resync/region_claim.h"
#include "replication/fabric/fabric.h"
#include "replication/primary/replicator.h"

namespace alpheus::recovery {

// The log whose epoch changes, and its region. All but OpenReplica are the
// calls of any_ring_log.h.
class SucceedingLog {
 public:
  virtual ~SucceedingLog() = default;

  virtual bool TryHold() = 0;
  virtual bool IsAtRest() const = 0;
  virtual bool HasRoomForEpoch() const = 0;
  virtual void HandRegion() = 0;
  // Continue(opened.start).
  virtual absl::Status Continue(const EpochOpened& opened) = 0;
  virtual void Resume() = 0;
  // Returns why the medium below the log is of no more use; OK: it is.
  virtual absl::Status MediumError() const = 0;
  // Returns the own replica for one opening; `fence` is that of
  // LocalOpenersReplica. Requires: the region was handed. Errors: as
  // LocalReplica::Open.
  virtual absl::StatusOr<std::unique_ptr<OpenersReplica>> OpenReplica(
      std::function<void()> fence) = 0;
};

// A change that is asked for.
struct SuccessionRequest {
  MembersChange change;
  std::vector<PeerAddress> peers;  // of both lists
};

// Options of all epochs of one log.
struct SuccessionOptions {
  replication::Replicator::Options replicator;
  // How the first epoch was opened; its deadlines are not used.
  ResyncOptions resync;
  // Nanoseconds for reserved records to become durable, and for all openings of
  // one change. Openings that make the change have half of open_ns (but EPS4).
  int64_t drain_ns = 1'000'000'000;
  int64_t open_ns = 5'000'000'000;
  // Bound of the random time between two openings (P-A4.1), in nanoseconds.
  int64_t rest_ns = 200'000'000;
  // Opens the source of the ballots of one change, for the same process. The
  // source ends when the change is done: a session that nobody polls would
  // expire. If this is not set, or fails, ballots are counted up from the
  // promises.
  std::function<absl::StatusOr<std::unique_ptr<quorum::BallotSource>>()>
      open_ballots = {};
};

class EpochSuccession final : public ReplicationSink,
                              private replication::Replicator::Observer {
 public:
  static constexpr size_t kOutcomesMax = 8;

  // Takes over the backups of `opened`, and its ring. `fabric`, `clock`,
  // `random`, `others` and the ring's memory must outlive the object. Without
  // `others`, events of other connections are dropped.
  EpochSuccession(fabric::Fabric& fabric, const Clock& clock,
                  RandomSource& random, SuccessionOptions options,
                  EpochOpened& opened,
                  replication::Replicator::Observer* others = nullptr);
  ~EpochSuccession() override;

  // As MemberUpkeep::ClaimReplica. Members change only after this call, whose
  // `log` has `replica`; both must outlive the object.
  void ClaimReplica(RegionClaimOptions claim, ScrubbingOptions scrubbing,
                    PrimaryReplica& replica, SucceedingLog& log);

  // Asks for a change, which a later Poll begins. Errors: FailedPrecondition
  // (the log has ended, or has no replica of its own, or that one does not
  // stay); Unavailable (another one is not done); those of CheckChange and
  // CheckFound (opening_quorums.h).
  absl::Status Ask(SuccessionRequest request);
  // The same for an operator's change, which comes with the claim
  // (RegionClaimOptions::change). Begins it unless it was begun (EPS6), and
  // returns its state. With nullptr returns the state of the last such change.
  // Called by the thread that polls.
  ChangeState AnswerNode(const AskChange* asked);

  struct Change {
    uint64_t asked = 0;   // number of changes
    uint64_t done = 0;    // of these; a change that failed is done
    absl::Status status;  // of the last one that is done
    ChangeWord word = ChangeWord::kNobody;  // the same in a word
    Epoch epoch;                            // running epoch
  };
  Change change() const {
    const MutexLock lock(mutex_);
    return change_;
  }

  // As MemberUpkeep::state. While an epoch is being opened, the state before.
  MemberUpkeep::State state() const {
    const MutexLock lock(mutex_);
    return shown_ ? *shown_ : upkeep_->state();
  }
  // The running list of members, with which the running epoch was installed.
  struct Members {
    Epoch epoch;
    Configuration configuration;
    quorum::QuorumSizes sizes;
    std::vector<PeerAddress> nodes;  // all of them, in ascending order
  };
  Members members() const {
    const MutexLock lock(mutex_);
    return members_;
  }

  void Advance(const RingEnd& finished) override {
    running().Advance(finished);
  }
  void LocalPersisted(Lsn lsn) override { running().LocalPersisted(lsn); }
  void AdvanceBounds(const RingBounds& bounds) override {
    running().AdvanceBounds(bounds);
  }
  void AnnounceDurable() override { running().AnnounceDurable(); }
  void BeginConfirmation() override;
  void End(const absl::Status& why) override;
  bool sends_for_waiters() const override {
    return fabric_.sends_for_waiters();
  }
  Polled Poll() override;
  ReplicationState replication_state() const override;
  absl::Status status() const override;
  void WaitForActivity(Deadline deadline) override;
  // Returns when Poll has something to do although nothing arrives; at the
  // latest `deadline`. Any thread.
  Deadline PollDeadline(Deadline deadline) const;
  void Wake() override { fabric_.Wake(); }

 private:
  enum class Phase { kRunning, kDraining, kOpening, kResting, kEnded };

  // The thread that polls is the only one that sets upkeep_.
  replication::Replicator& running() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return upkeep_->replicator();
  }
  MemberUpkeep& upkeep() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return *upkeep_;
  }
  std::unique_ptr<MemberUpkeep> MakeUpkeep(EpochOpened& opened);

  Members MembersOf(Epoch epoch, Configuration configuration) const;
  // Returns why this process can't make this change, or any.
  absl::Status CheckAble(const MembersChange& change) const;
  // Returns why nobody can make this change to the running list.
  absl::Status CheckPossible(const MembersChange& change) const;
  absl::Status Ask(SuccessionRequest request, uint64_t id);
  ChangeState Begin(const AskChange& asked);
  const ChangeState* FindOutcome(uint64_t id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void AdvanceChange();
  void BeginChange();
  void Drain();
  // Errors: nothing was begun.
  absl::Status BeginOpening();
  absl::Status OpenBallots();
  void OpenOrFail();
  void ContinueOpening();
  void OpeningFailed(const absl::Status& why, bool again);
  // Returns true if no member that was to be replaced is in this list.
  bool HasReplaced(const Configuration& opened) const;
  void TakeNewList();
  void GoOn(EpochOpened opened);
  void ReplaceUpkeep(EpochOpened& opened);
  // The own replica has promised the next epoch (EPS2).
  void Retire();
  void Done(ChangeWord word, const absl::Status& status);
  void NotBegun(ChangeWord word, const absl::Status& why);
  void Refuse(const absl::Status& why);
  void EndUnpromised();
  void EndPromised(const absl::Status& why);
  void NoteDue();
  EpochOpeningOptions OptionsToOpen() const;

  void OnCompletion(const fabric::Completion& completion) override;
  void OnConnectionEvent(const fabric::ConnectionEvent& event) override;

  fabric::Fabric& fabric_;
  const Clock& clock_;
  RandomSource& random_;
  replication::Replicator::Observer* const others_;
  SuccessionOptions options_;  // `resync` is of the running list
  std::unique_ptr<quorum::BallotSource> ballots_;  // of the change; or null
  // Set by ClaimReplica.
  std::optional<RegionClaimOptions> claim_;
  ScrubbingOptions scrubbing_;
  PrimaryReplica* replica_ = nullptr;
  SucceedingLog* log_ = nullptr;

  // Used only by the thread that polls.
  Phase phase_ = Phase::kRunning;
  bool has_resumed_ = false;   // in the last Poll
  bool has_promised_ = false;  // EPS2
  bool with_change_ = false;   // the present opening makes the change
  bool is_half_made_ = false;  // a member may have the new list
  absl::Status not_changed_;   // why no later opening makes it
  SuccessionRequest request_;
  int64_t until_ns_ = 0;        // of kDraining and kResting
  Deadline change_until_ = {};  // of openings with the change
  Deadline open_until_ = {};    // of all openings for this change
  Epoch above_;
  bool whole_reports_ = false;  // as EpochOpeningOptions
  RingBounds first_bounds_;     // with which the running epoch was opened
  ReplicationState before_;     // while has_promised_
  absl::Status status_;         // of kEnded
  std::unique_ptr<EpochOpening> opening_;

  std::atomic<bool> is_asked_{false};
  // When Poll has something to do for a change.
  std::atomic<int64_t> due_ns_;

  mutable Mutex mutex_;
  std::unique_ptr<MemberUpkeep> upkeep_ ABSL_GUARDED_BY(mutex_);
  std::optional<MemberUpkeep::State> shown_ ABSL_GUARDED_BY(mutex_);
  std::optional<SuccessionRequest> asked_ ABSL_GUARDED_BY(mutex_);
  int64_t asked_at_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  Change change_ ABSL_GUARDED_BY(mutex_);
  // Outcomes of changes that came with an id, oldest first, without `missing`.
  std::vector<ChangeState> outcomes_ ABSL_GUARDED_BY(mutex_);
  uint64_t asked_id_ ABSL_GUARDED_BY(mutex_) =
      0;  // of the last change; 0: none
  // LSNs with which the running epoch began.
  Lsn head_lsn_ ABSL_GUARDED_BY(mutex_);
  Lsn next_lsn_ ABSL_GUARDED_BY(mutex_);
  Members members_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_RESYNC_EPOCH_SUCCESSION_H_
