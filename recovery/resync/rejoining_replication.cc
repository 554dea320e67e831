// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/rejoining_replication.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "recovery/server/ring_fetch.h"

namespace alpheus {
namespace {

RejoinedLog LogOf(const EpochOpened& opened, const RegisteredBytes& ring) {
  RejoinedLog log;
  log.configuration = opened.configuration;
  log.epoch = opened.epoch;
  log.table = opened.start.table;
  log.start = opened.end;
  log.ring = Ring(ring.bytes().data(), ring.bytes().size());
  log.ring_key = ring.key();
  return log;
}

}  // namespace

RejoiningReplication::RejoiningReplication(
    Fabric& fabric, const Clock& clock, RandomSource& random,
    const Replicator::Options& replicator, const RejoiningOptions& rejoining,
    EpochOpened& opened, Replicator::Observer* others)
    : fabric_(fabric),
      clock_(clock),
      others_(others),
      replicas_(rejoining.opening.peers.size() +
                (replicator.has_local_replica ? 1 : 0)),
      ring_(std::move(opened.ring)),
      first_head_(opened.head),
      replicator_(fabric, clock, replicator,
                  {opened.end.lsn - 1, opened.end.offset}, this),
      log_(LogOf(opened, *ring_)),
      rejoining_(fabric, clock, random, rejoining, log_) {
  for (OpenedBackup& backup : opened.backups) {
    replicator_.Add(DescribePeer({backup.node, backup.name}), backup.connection,
                    std::move(backup.session));
  }
  for (const OtherMember& absent : opened.not_installed) {
    rejoining_.NoteAbsent(absent);
  }
  // No member is due yet: this only notes who is away.
  Rejoin();
  NoteState();
}

LogPosition RejoiningReplication::Head() const {
  return replicator_.head().lsn == Lsn(0) ? first_head_ : replicator_.head();
}

// Nearly always all replicas are in sync, and the first test returns.
Polled RejoiningReplication::OnPoll(Polled polled) {
  if (polled == Polled::kIdle && noted_in_sync_ == replicas_) return polled;
  if (hold_ != nullptr || scrub_ != nullptr) {
    const int64_t now = replicator_.looked_at_ns();
    if (hold_ != nullptr && hold_->NextPoll().HasPassed(now)) AttendHold();
    if (scrub_ != nullptr && scrub_->NextPoll().HasPassed(now)) ScrubOn();
  }
  if (replicator_.in_sync() == replicas_ && noted_in_sync_ == replicas_) {
    return Polled::kMoved;
  }
  Rejoin();
  NoteState();
  return Polled::kMoved;
}

void RejoiningReplication::NoteNextPoll() {
  int64_t next = rejoining_.NextPoll().at_nanos();
  if (hold_ != nullptr) next = std::min(next, hold_->NextPoll().at_nanos());
  if (scrub_ != nullptr) next = std::min(next, scrub_->NextPoll().at_nanos());
  replicator_.SetObserverDue(Deadline::AtNanos(next));
}

void RejoiningReplication::HoldReplica(ReplicaHoldOptions hold,
                                       const ScrubbingOptions& scrubbing,
                                       HeldReplica& replica) {
  replica_ = &replica;
  scrub_ = std::make_unique<OwnScrub>(
      fabric_, clock_,
      Scrubbing::Node{hold.hello.cluster_id, hold.node, hold.credentials, {}},
      scrubbing,
      OwnScrub::Log{hold.hello.log_id, log_.configuration, log_.epoch,
                    log_.table, log_.ring},
      replica);
  hold.scrub = [this](bool start) {
    if (scrub_ == nullptr) return Scrubbed();
    if (start) scrub_->Start();
    return scrub_->State();
  };
  hold.show = [this](const Fetch& fetch) { return Show(fetch); };
  hold_ = std::make_unique<ReplicaHold>(fabric_, clock_, std::move(hold));
  NoteNextPoll();
}

// Shows nothing of a failed log, as it is unknown what that has persisted.
Fetched RejoiningReplication::Show(const Fetch& fetch) const {
  Fetched shown{fetch.from, {}};
  if (replicator_.has_failed() || !replica_->IsUsable()) return shown;
  const RingOffset end = replicator_.local_end().offset;
  replica_->WhileAtRest(
      [&] { shown = FetchedFrom(log_.ring, Head().offset, end, fetch); });
  return shown;
}

// A failed log is opened again, and scrubbed then.
void RejoiningReplication::ScrubOn() {
  if (replicator_.has_failed()) {
    scrub_.reset();
    return NoteNextPoll();
  }
  const Polled polled = scrub_->Poll(Head(), replicator_.local_end().lsn);
  NoteNextPoll();
  if (polled == Polled::kIdle) return;
  const Scrubbed said = scrub_->State();
  const MutexLock lock(state_mutex_);
  state_.scrub_passes = said.passes;
  state_.scrubbed = said.total;
}

void RejoiningReplication::AttendHold() {
  if (hold_->Poll() == Polled::kDone) {
    const Promise wanted = hold_->wanted();
    GiveWay(wanted);
  }
  NoteNextPoll();
}

// RJR1. The end of the connection tells the node that the lock is free. If the
// region can't be given up, the log has ended all the same.
void RejoiningReplication::GiveWay(const Promise& wanted) {
  replicator_.End(absl::AbortedError(
      absl::StrCat(DescribeOpening(wanted),
                   "; this process has given up its replica for it")));
  replica_->GiveUp().IgnoreError();
  scrub_.reset();
  hold_.reset();
}

// A failed log is opened again; nobody joins it.
void RejoiningReplication::Rejoin() {
  if (replicator_.has_failed()) rejoining_.Stop();
  const Polled polled = rejoining_.Poll(
      {Head(), replicator_.end(), replicator_.durable_lsn()},
      [this](const std::string& name) { return replicator_.StatusOf(name); });
  if (polled == Polled::kMoved) {
    OpenedBackup joined = rejoining_.TakeJoined();
    replicator_.Join(DescribePeer({joined.node, joined.name}),
                     joined.connection, std::move(joined.session));
  }
  replicator_.SetJoining(rejoining_.is_at_work(), rejoining_.pinned());
}

// Takes the lock only if something changed, so that appends pay nothing.
void RejoiningReplication::NoteState() {
  const uint32_t in_sync = replicator_.in_sync();
  const Rejoining::Counters& counters = rejoining_.counters();
  if (in_sync == noted_in_sync_ && counters == noted_) return;
  noted_in_sync_ = in_sync;
  noted_ = counters;
  const MutexLock lock(state_mutex_);
  state_.in_sync = in_sync;
  state_.counters = counters;
  state_.away = rejoining_.Away();
}

void RejoiningReplication::Take(const Completion& completion) {
  if (rejoining_.Take(completion)) return;
  if (scrub_ != nullptr && scrub_->Take(completion)) return;
  if (hold_ != nullptr && hold_->Take(completion)) return;
  if (others_ != nullptr) others_->Take(completion);
}

void RejoiningReplication::Take(const ConnectionEvent& event) {
  if (rejoining_.Take(event)) return;
  if (scrub_ != nullptr && scrub_->Take(event)) return;
  if (hold_ != nullptr && hold_->Take(event)) return;
  if (others_ != nullptr) others_->Take(event);
}

}  // namespace alpheus
