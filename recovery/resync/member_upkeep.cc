// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/member_upkeep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "recovery/server/ring_fetch.h"

namespace alpheus::recovery {
namespace {

ResyncSource LogOf(const EpochOpened& opened,
                   const replication::RegisteredBytes& ring) {
  ResyncSource log;
  log.configuration = opened.configuration;
  log.epoch = opened.epoch;
  log.table = opened.start.table;
  log.start = opened.end;
  log.ring = Ring(ring.bytes().data(), ring.bytes().size());
  log.ring_key = ring.key();
  return log;
}

}  // namespace

MemberUpkeep::MemberUpkeep(fabric::Fabric& fabric, const Clock& clock,
                           RandomSource& random,
                           const replication::Replicator::Options& replicator,
                           const ResyncOptions& resync, EpochOpened& opened,
                           replication::Replicator::Observer* others)
    : fabric_(fabric),
      clock_(clock),
      others_(others),
      replicas_(resync.opening.peers.size() +
                (replicator.has_local_replica ? 1 : 0)),
      ring_(std::move(opened.ring)),
      first_bounds_{opened.head, opened.start.superline.ceiling},
      replicator_(fabric, clock, replicator,
                  {opened.end.lsn - 1, opened.end.offset}, this),
      log_(LogOf(opened, *ring_)),
      resync_(fabric, clock, random, resync, log_) {
  for (OpenedBackup& backup : opened.backups) {
    replicator_.Add(DescribePeer({backup.node, backup.name}), backup.connection,
                    std::move(backup.session));
  }
  for (const OtherMember& absent : opened.not_installed) {
    resync_.NoteAbsent(absent);
  }
  // No member is due yet: this only notes who is out of sync.
  Resync();
  NoteState();
}

const RingBounds& MemberUpkeep::Bounds() const {
  const RingBounds& bounds = replicator_.bounds();
  return bounds.head.lsn == Lsn(0) ? first_bounds_ : bounds;
}

// Nearly always all replicas are in sync, and the first test returns.
Polled MemberUpkeep::OnPoll(Polled polled) {
  if (polled == Polled::kIdle && noted_in_sync_ == replicas_) return polled;
  if (claim_ != nullptr || scrub_ != nullptr) {
    const int64_t now = replicator_.last_poll_ns();
    if (claim_ != nullptr && claim_->NextPoll().HasPassed(now)) PollClaim();
    if (scrub_ != nullptr && scrub_->NextPoll().HasPassed(now)) ContinueScrub();
  }
  if (replicator_.in_sync() == replicas_ && noted_in_sync_ == replicas_ &&
      replicator_.has_failed() == noted_failed_) {
    return Polled::kMoved;
  }
  Resync();
  NoteState();
  return Polled::kMoved;
}

void MemberUpkeep::NoteNextPoll() {
  int64_t next = resync_.NextPoll().at_nanos();
  if (claim_ != nullptr) next = std::min(next, claim_->NextPoll().at_nanos());
  if (scrub_ != nullptr) next = std::min(next, scrub_->NextPoll().at_nanos());
  replicator_.SetObserverDue(Deadline::AtNanos(next));
}

void MemberUpkeep::ClaimReplica(RegionClaimOptions claim,
                                const ScrubbingOptions& scrubbing,
                                PrimaryReplica& replica) {
  replica_ = &replica;
  scrub_ = std::make_unique<OwnScrub>(
      fabric_, clock_,
      Scrubbing::Node{
          claim.hello.cluster_id, claim.node, claim.credentials, {}},
      scrubbing,
      OwnScrub::Log{claim.hello.log_id, log_.configuration, log_.epoch,
                    log_.table, log_.ring},
      replica);
  claim.scrub = [this](bool start) {
    if (scrub_ == nullptr) return Scrubbed();
    if (start) scrub_->Start();
    return scrub_->State();
  };
  claim.show = [this](const Fetch& fetch) { return Show(fetch); };
  claim_ = std::make_unique<RegionClaim>(fabric_, clock_, std::move(claim));
  NoteNextPoll();
}

// Shows nothing of a failed log, as it is unknown what that has persisted.
Fetched MemberUpkeep::Show(const Fetch& fetch) const {
  Fetched shown{fetch.from, {}};
  if (replicator_.has_failed() || !replica_->IsUsable()) return shown;
  const RingOffset end = replicator_.local_end().offset;
  replica_->WithRingFrozen([&] {
    shown = FetchedFrom(log_.ring, Bounds().head.offset, end, fetch);
  });
  return shown;
}

// A failed log is opened again, and scrubbed then.
void MemberUpkeep::ContinueScrub() {
  if (replicator_.has_failed()) {
    scrub_.reset();
    return NoteNextPoll();
  }
  const Polled polled =
      scrub_->Poll(Bounds().head, replicator_.local_end().lsn);
  NoteNextPoll();
  if (polled == Polled::kIdle) return;
  const Scrubbed said = scrub_->State();
  const MutexLock lock(state_mutex_);
  state_.scrub_passes = said.passes;
  state_.scrubbed = said.total;
}

void MemberUpkeep::PollClaim() {
  if (claim_->Poll() == Polled::kDone) {
    const quorum::Promise wanted = claim_->wanted();
    StepDown(wanted);
  }
  NoteNextPoll();
}

// MUK1. The end of the connection tells the node that the lock is free. If the
// region can't be given up, the log has ended all the same.
void MemberUpkeep::StepDown(const quorum::Promise& wanted) {
  replicator_.End(absl::AbortedError(
      absl::StrCat(quorum::DescribeOpening(wanted),
                   "; this process has released its replica for it")));
  replica_->ReleaseRegion().IgnoreError();
  scrub_.reset();
  claim_.reset();
}

// The connection to the own node ends: until the next claim the node finds the
// replica's lock taken, and tells openers to come again.
void MemberUpkeep::Retire() {
  resync_.Stop();
  scrub_.reset();
  claim_.reset();
  NoteNextPoll();
}

// A failed log is opened again; nobody joins it.
void MemberUpkeep::Resync() {
  if (replicator_.has_failed()) resync_.Stop();
  const Polled polled = resync_.Poll(
      {Bounds(), replicator_.end(), replicator_.durable_lsn()},
      [this](const std::string& name) { return replicator_.StatusOf(name); });
  if (polled == Polled::kMoved) {
    OpenedBackup joined = resync_.TakeJoined();
    replicator_.Join(DescribePeer({joined.node, joined.name}),
                     joined.connection, std::move(joined.session));
  }
  if (resync_.TakeScrubRequest() && scrub_ != nullptr) {
    scrub_->Start();
    NoteNextPoll();
  }
  std::optional<RingOffset> limit = resync_.pinned();
  if (limit) limit = *limit + log_.ring.capacity();
  replicator_.SetJoining(resync_.is_at_work(), limit);
}

// Takes the lock only if something changed, so that appends pay nothing.
void MemberUpkeep::NoteState() {
  const uint32_t in_sync = replicator_.in_sync();
  const ReplicaResync::Counters& counters = resync_.counters();
  const bool has_failed = replicator_.has_failed();
  if (in_sync == noted_in_sync_ && counters == noted_ &&
      has_failed == noted_failed_) {
    return;
  }
  noted_failed_ = has_failed;
  noted_in_sync_ = in_sync;
  noted_ = counters;
  const MutexLock lock(state_mutex_);
  state_.in_sync = in_sync;
  state_.has_failed = has_failed;
  state_.counters = counters;
  state_.out_of_sync = resync_.OutOfSync();
  state_.synced = replicator_.SyncedBackups();
}

void MemberUpkeep::OnCompletion(const fabric::Completion& completion) {
  if (resync_.OnCompletion(completion)) return;
  if (scrub_ != nullptr && scrub_->OnCompletion(completion)) return;
  if (claim_ != nullptr && claim_->OnCompletion(completion)) return;
  if (others_ != nullptr) others_->OnCompletion(completion);
}

void MemberUpkeep::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (resync_.OnConnectionEvent(event)) return;
  if (scrub_ != nullptr && scrub_->OnConnectionEvent(event)) return;
  if (claim_ != nullptr && claim_->OnConnectionEvent(event)) return;
  if (others_ != nullptr) others_->OnConnectionEvent(event);
}

}  // namespace alpheus::recovery
