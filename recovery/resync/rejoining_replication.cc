// SPDX-License-Identifier: Apache-2.0
#include "recovery/resync/rejoining_replication.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "recovery/server/ring_fetch.h"

namespace alpheus {
namespace {

constexpr int64_t kLookAgainNanos = 20'000;

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

RingEnd EndOf(const LogPosition& position) {
  return {position.lsn - 1, position.offset};
}

}  // namespace

RejoiningReplication::RejoiningReplication(
    Fabric& fabric, const Clock& clock, RandomSource& random,
    const Replicator::Options& replicator, const RejoiningOptions& rejoining,
    EpochOpened& opened, LogReplication::Others* others)
    : fabric_(fabric),
      clock_(clock),
      others_(others),
      replicas_(rejoining.opening.peers.size() +
                (replicator.has_local_replica ? 1 : 0)),
      ring_(std::move(opened.ring)),
      now_{opened.head, EndOf(opened.end), opened.end.lsn - 1},
      persisted_(now_.finished),
      replication_(fabric, clock, replicator, now_.finished, this),
      log_(LogOf(opened, *ring_)),
      rejoining_(fabric, clock, random, rejoining, log_),
      next_poll_ns_(rejoining_.NextPoll().at_nanos()) {
  for (OpenedBackup& backup : opened.backups) {
    replication_.Add(DescribePeer({backup.node, backup.name}),
                     backup.connection, std::move(backup.session));
  }
  for (const OtherMember& absent : opened.not_installed) {
    rejoining_.NoteAbsent(absent);
  }
  // No member is due yet: this only notes who is away.
  Rejoin();
  NoteState();
}

void RejoiningReplication::Advance(const RingEnd& finished) {
  now_.finished = finished;
  replication_.Advance(finished);
}

void RejoiningReplication::LocalPersisted(Lsn lsn) {
  if (lsn >= now_.finished.lsn) persisted_ = now_.finished;
  replication_.LocalPersisted(lsn);
}

void RejoiningReplication::AdvanceHead(const LogPosition& head) {
  now_.head = head;
  replication_.AdvanceHead(head);
}

// Nearly always all replicas are in sync, and the first test returns.
bool RejoiningReplication::Poll() {
  if (!replication_.Poll() && noted_in_sync_ == replicas_) return false;
  if (hold_ != nullptr || scrub_ != nullptr) {
    const int64_t now = replication_.looked_at_ns();
    if (hold_ != nullptr && now >= hold_->next_poll_ns()) AttendHold();
    if (scrub_ != nullptr && now >= scrub_->next_poll_ns()) ScrubOn();
  }
  if (replication_.in_sync() == replicas_ && noted_in_sync_ == replicas_) {
    return true;
  }
  Rejoin();
  NoteNextPoll();
  NoteState();
  return true;
}

void RejoiningReplication::NoteNextPoll() {
  int64_t next = rejoining_.NextPoll().at_nanos();
  if (hold_ != nullptr) next = std::min(next, hold_->next_poll_ns());
  if (scrub_ != nullptr) next = std::min(next, scrub_->next_poll_ns());
  next_poll_ns_.store(next, std::memory_order_relaxed);
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
  if (replication_.has_failed() || !replica_->IsUsable()) return shown;
  const RingOffset end = persisted_.offset;
  replica_->WhileAtRest(
      [&] { shown = FetchedFrom(log_.ring, now_.head.offset, end, fetch); });
  return shown;
}

// A failed log is opened again, and scrubbed then.
void RejoiningReplication::ScrubOn() {
  const bool is_over =
      !replication_.has_failed() && scrub_->Poll(now_.head, persisted_.lsn);
  if (replication_.has_failed()) scrub_.reset();
  NoteNextPoll();
  if (!is_over) return;
  const Scrubbed said = scrub_->State();
  const MutexLock lock(state_mutex_);
  state_.scrub_passes = said.passes;
  state_.scrubbed = said.total;
}

void RejoiningReplication::AttendHold() {
  const std::optional<Promise> wanted = hold_->Poll();
  if (wanted) GiveWay(*wanted);
  NoteNextPoll();
}

// RJR1. The end of the connection tells the node that the lock is free. If the
// region can't be given up, the log has ended all the same.
void RejoiningReplication::GiveWay(const Promise& wanted) {
  replication_.End(absl::AbortedError(
      absl::StrCat(DescribeOpening(wanted),
                   "; this process has given up its replica for it")));
  replica_->GiveUp().IgnoreError();
  scrub_.reset();
  hold_.reset();
}

// A failed log is opened again; nobody joins it.
void RejoiningReplication::Rejoin() {
  if (replication_.has_failed()) rejoining_.Stop();
  now_.durable_lsn = replication_.durable_lsn();
  std::optional<OpenedBackup> joined = rejoining_.Poll(
      now_,
      [this](const std::string& name) { return replication_.StatusOf(name); });
  if (!joined) return;
  replication_.Join(DescribePeer({joined->node, joined->name}),
                    joined->connection, std::move(joined->session));
}

// Takes the lock only if something changed, so that appends pay nothing.
void RejoiningReplication::NoteState() {
  const uint32_t in_sync = replication_.in_sync();
  const Rejoining::Counters& counters = rejoining_.counters();
  if (in_sync == noted_in_sync_ && counters == noted_) return;
  noted_in_sync_ = in_sync;
  noted_ = counters;
  const MutexLock lock(state_mutex_);
  state_.in_sync = in_sync;
  state_.counters = counters;
  state_.away = rejoining_.Away();
}

ReplicationState RejoiningReplication::replication_state() const {
  ReplicationState state = replication_.replication_state();
  if (const auto pinned = rejoining_.pinned()) {
    state.reuse_head = std::min(state.reuse_head, *pinned);
  }
  if (rejoining_.is_at_work()) {
    state.is_idle = false;
    state.is_catching_up = true;
  }
  return state;
}

// At least kLookAgainNanos from now: a waiter would return at once, again and
// again, while another thread is in the middle of a step.
Deadline RejoiningReplication::LookBy(Deadline deadline) const {
  const int64_t next = std::max(next_poll_ns_.load(std::memory_order_relaxed),
                                clock_.NowNanos() + kLookAgainNanos);
  return Deadline::AtNanos(
      std::min(replication_.LookBy(deadline).at_nanos(), next));
}

void RejoiningReplication::WaitForActivity(Deadline deadline) {
  fabric_.WaitForActivity(LookBy(deadline));
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
