// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/replicated_forcer.h"

#include <algorithm>

#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
ReplicatedForcer<P>::ReplicatedForcer(ReplicationSink& sink, FlushOrder order,
                                      const RingEnd& start,
                                      const RingBounds& bounds,
                                      const CompletionTracker& tracker,
                                      Forcer<P>& forcer,
                                      Reclaimer<P>& reclaimer,
                                      Progress& progress, LogFailure& failure)
    : sink_(sink),
      order_(order),
      first_limit_(bounds.ceiling),
      tracker_(tracker),
      forcer_(forcer),
      reclaimer_(reclaimer),
      progress_(progress),
      failure_(failure),
      durable_lsn_(start.lsn.value),
      in_sync_lsn_(start.lsn.value),
      reuse_limit_(bounds.ceiling.value),
      offered_lsn_(start.lsn.value),
      durable_head_lsn_(bounds.head.lsn.value),
      offered_(start) {}

template <Persistence P>
bool ReplicatedForcer<P>::AnnounceDurable() {
  is_to_announce_.store(true, std::memory_order_release);
  Poll();
  return !is_to_announce_.load(std::memory_order_acquire);
}

template <Persistence P>
void ReplicatedForcer<P>::PollIfHeadMoved() {
  if (reclaimer_.publications() != announced_.load(std::memory_order_acquire)) {
    Poll();
  }
}

// A thread that finds the step taken may have finished a record, or published a
// head, that the running step has missed, and may then sleep. So no request may
// get lost:
//
//   requester: store request; fence; try the lock again
//   stepper:   unlock;        fence; look for requests
//
// One of the two sees the other. Either the second try succeeds, or the stepper
// sees the request and notifies the sleeper, which has announced itself. A
// third thread that steps in between adopts the request.
template <Persistence P>
void ReplicatedForcer<P>::Poll(Lsn lsn, Then then) {
  // RF6. A thread that asked during the step found it taken, and may have left
  // no more than a callback. If another thread has the step now, it comes here.
  while (TryStep(lsn, then) && IsRoundDue() && !failure_.failed()) lsn = Lsn(0);
}

template <Persistence P>
bool ReplicatedForcer<P>::TryStep(Lsn lsn, Then then) {
  if (!step_mutex_.TryLock()) {
    LeaveRequest(lsn);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!step_mutex_.TryLock()) return false;
  }
  bool has_taken_over = false;
  // A request that comes later is seen below.
  if (missed_.load(std::memory_order_relaxed) != 0) {
    // Acquire: sees the records that the requesting threads had finished.
    const uint64_t missed = missed_.exchange(0, std::memory_order_acq_rel);
    if (missed != 0) {
      lsn = std::max(lsn, Lsn(missed - 1));
      then = Then::kGoesOn;  // the thread that asked may do that
    }
    // A Beginner registers before it leaves its request.
    has_taken_over = beginners_.load(std::memory_order_relaxed) != 0;
  }
  const Stepped stepped = StepLocked(lsn, then);
  step_mutex_.Unlock();
  if (!stepped.status.ok()) failure_.Fail(stepped.status);
  // Callbacks run in LogFailure::Notify and Progress::Notify, with no lock
  // held.
  failure_.Notify();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool is_missed = missed_.load(std::memory_order_relaxed) != 0;
  if (stepped.is_news || is_missed || has_taken_over) progress_.Notify();
  return true;
}

template <Persistence P>
void ReplicatedForcer<P>::LeaveRequest(Lsn lsn) {
  uint64_t missed = missed_.load(std::memory_order_relaxed);
  // Release, and a store even of the same value: publishes the records that
  // this thread has finished.
  while (!missed_.compare_exchange_weak(missed, std::max(missed, lsn.value + 1),
                                        std::memory_order_release,
                                        std::memory_order_relaxed)) {
  }
}

// The call that asks has begun, so the round may not have. seq_cst: the thread
// that begins it stores begun_round_ before it posts (BeginRound). So if this
// load sees an older number, nothing of the next round was sent yet.
template <Persistence P>
uint64_t ReplicatedForcer<P>::AskToConfirm() {
  const uint64_t round = begun_round_.load(std::memory_order_seq_cst) + 1;
  uint64_t asked = asked_round_.load(std::memory_order_relaxed);
  while (asked < round && !asked_round_.compare_exchange_weak(
                              asked, round, std::memory_order_seq_cst,
                              std::memory_order_relaxed)) {
  }
  return round;
}

template <Persistence P>
bool ReplicatedForcer<P>::IsRoundDue() const {
  const uint64_t begun = begun_round_.load(std::memory_order_acquire);
  return asked_round_.load(std::memory_order_seq_cst) > begun &&
         confirmed_round_.load(std::memory_order_acquire) == begun;
}

template <Persistence P>
bool ReplicatedForcer<P>::BeginRound() {
  if (!IsRoundDue()) return false;
  begun_round_.fetch_add(1, std::memory_order_seq_cst);
  sink_.BeginConfirmation();
  return true;
}

// A thread that waits for an ack steps again and again. A step without news
// must cost no more than one Poll: the sink's state is asked only if it may
// have changed.
template <Persistence P>
typename ReplicatedForcer<P>::Stepped ReplicatedForcer<P>::StepLocked(
    Lsn lsn, Then then) {
  bool has_announced = false;
  bool is_offered = false;
  bool has_begun = false;
  if (!failure_.failed()) {
    // Before records are offered: their batches ask for the round as well.
    has_begun = BeginRound();
    // A failure of the medium is the log's; it is seen below.
    reclaimer_.RaiseAhead(offered_.offset).IgnoreError();
    has_announced = AnnounceHead();
    if (is_to_announce_.load(std::memory_order_acquire)) {
      is_to_announce_.store(false, std::memory_order_release);
      sink_.AnnounceDurable();
      has_announced = true;
    }
    is_offered = lsn > offered_.lsn && OfferFinished(then);
  }
  EndSinkIfFailed();
  const bool is_news =
      is_offered || sink_.Poll() != Polled::kIdle || has_announced || has_begun;
  if (!is_news && has_published_) return {};
  has_published_ = true;
  const ReplicationState state = sink_.replication_state();
  return {Publish(state), state.has_failed ? sink_.status() : absl::OkStatus()};
}

// RF4.
template <Persistence P>
void ReplicatedForcer<P>::EndSinkIfFailed() {
  if (!failure_.failed() || has_ended_sink_) return;
  has_ended_sink_ = true;
  if (!sink_.replication_state().has_failed) sink_.End(failure_.status());
}

template <Persistence P>
bool ReplicatedForcer<P>::OfferFinished(Then then) {
  const RingEnd finished = FindFinished();
  if (finished.lsn == offered_.lsn) return false;
  typename Forcer<P>::Batch batch;
  if (order_ != FlushOrder::kRemoteFirst) {
    batch = forcer_.BeginStep(finished.lsn);
  }
  if (order_ == FlushOrder::kLocalFirst &&
      forcer_.EndStep(batch, finished.lsn) == Progressed::kFailed) {
    return false;
  }
  sink_.Advance(finished);
  // Posting does not send, and the fence below may take long: send first. What
  // arrived meanwhile is taken, too: a caller that yields its core first would
  // have waited for it (docs/results/service.md).
  const bool is_left_to_wait =
      then == Then::kWaits && sink_.sends_for_waiters();
  if (!is_left_to_wait) sink_.Poll();
  offered_ = finished;
  offered_lsn_.store(finished.lsn.value, std::memory_order_release);
  if (order_ == FlushOrder::kRemoteFirst) {
    batch = forcer_.BeginStep(finished.lsn);
  }
  if (order_ != FlushOrder::kLocalFirst &&
      forcer_.EndStep(batch, finished.lsn) == Progressed::kFailed) {
    return true;
  }
  sink_.LocalPersisted(forcer_.durable_lsn());
  return true;
}

// Reads slots safely: they live until their LSN is durable, and every offered
// record is finished.
template <Persistence P>
RingEnd ReplicatedForcer<P>::FindFinished() const {
  RingEnd finished = offered_;
  while (tracker_.IsFinished(finished.lsn + 1)) {
    finished.lsn = finished.lsn + 1;
    finished.offset = tracker_.ExtentOf(finished.lsn).end;
  }
  return finished;
}

template <Persistence P>
bool ReplicatedForcer<P>::AnnounceHead() {
  const uint64_t publications = reclaimer_.publications();
  if (publications == announced_.load(std::memory_order_relaxed)) return false;
  // The bounds may be newer than the count; they are announced again then.
  sink_.AdvanceBounds(reclaimer_.published());
  announced_.store(publications, std::memory_order_release);
  return true;
}

template <Persistence P>
bool ReplicatedForcer<P>::Publish(const ReplicationState& sink) {
  is_catching_up_.store(sink.is_catching_up, std::memory_order_release);
  // A thread that found the step taken may be about to sleep because the log
  // was idle.
  bool is_news = is_idle_.exchange(sink.is_idle, std::memory_order_acq_rel) &&
                 !sink.is_idle;
  is_news |= sink.has_resumed;
  if (failure_.failed()) {
    return is_news;  // RF4
  }
  const Lsn durable = std::min(sink.durable_lsn, forcer_.durable_lsn());
  const uint64_t own_limit =
      reclaimer_.reuse_limit_word().load(std::memory_order_acquire);
  const uint64_t limit =
      std::min(own_limit, std::max(sink.reuse_limit, first_limit_).value);
  is_news |= Raise(durable_head_lsn_, sink.durable_head_lsn.value);
  is_news |= Raise(reuse_limit_, limit);
  is_news |= Raise(durable_lsn_, durable.value);
  // No thread sleeps for it: callbacks look at it after each step.
  Raise(in_sync_lsn_, std::min(sink.in_sync_lsn, durable).value);
  // After durable_lsn_: a thread that sees the round over sees what is durable.
  if (!sink.is_confirming && !sink.has_failed) {
    is_news |= Raise(confirmed_round_, begun_round_.load());
  }
  return is_news;
}

// Release: a thread that sees a record durable also sees it persisted. A thread
// that may reuse bytes knows that all heads are on media.
template <Persistence P>
bool ReplicatedForcer<P>::Raise(std::atomic<uint64_t>& word, uint64_t value) {
  if (value <= word.load(std::memory_order_relaxed)) return false;
  word.store(value, std::memory_order_release);
  return true;
}

template <Persistence P>
bool ReplicatedForcer<P>::AwaitsBackups() const {
  return durable_lsn_.load(std::memory_order_acquire) <
             offered_lsn_.load(std::memory_order_acquire) ||
         reuse_limit_.load(std::memory_order_acquire) <
             reclaimer_.reuse_limit_word().load(std::memory_order_acquire);
}

ALPHEUS_INSTANTIATE_CLASS(ReplicatedForcer);

}  // namespace alpheus
