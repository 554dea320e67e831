// SPDX-License-Identifier: Apache-2.0
// replicated_forcer: makes finished records durable on W replicas.
//
// Idea: in a replicated log the Forcer says what the log's own replica has
// persisted, and the sink (replication_sink.h) what W replicas have. One step
// joins them: find the records that are finished, offer them to the sink, force
// them here, say so, take in what arrived, publish what is durable now. Whoever
// waits steps, one at a time; posting is short, and nobody holds the step while
// it waits for an ack, so that many batches are under way at once. The records
// that several threads finish during a step go out together with the next one.
//
// The order within a step is an option (FlushOrder). What the backups do is the
// same in all of them, and so is when the own replica counts.
//
// Invariants:
//   RF1. durable_lsn() <= the sink's, and <= what this replica has persisted
//        (where that counts for nothing, for a log in plain memory, it costs
//        nothing either). So a slot of the CompletionTracker is free only when
//        neither needs it; every step forces here what it offered there, so
//        that nobody waits for it.
//   RF2. The sink hears of a persisted LSN only after its fence (P-H22).
//   RF3. reuse_limit <= the head of every replica in sync, the own included, +
//        capacity (P-L4): bytes are given out only when no replica whose ring
//        they are written to needs them after a crash.
//   RF4. Once the sink or this host's medium fails nothing is durable any more
//        that was not (P-H20), and all callers hear of it through LogFailure
//        (P-F7).
//   RF5. Whenever is_idle() becomes false somebody notifies: a thread that saw
//        it true and has announced itself may sleep.
// Thread safety: all members concurrently. step_mutex_ is only ever tried.
// References: protocol P-A3.3, P-A3.6, P-L4, P-H20, P-H22; Arcadia §4.3, §4.4,
// §5.3.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_FORCER_H_
#define ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_FORCER_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/waiter.h"
#include "log/core/durability/flush_order.h"
#include "log/core/durability/forcer.h"
#include "log/core/durability/replication_sink.h"
#include "log/core/space/reclaimer.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class ReplicatedForcer {
 public:
  using Progressed = typename Forcer<P>::Progressed;

  // Everything up to `start` is durable, and `head` is in the superline of
  // every replica. Only this object calls `forcer` while threads append.
  ReplicatedForcer(ReplicationSink& sink, FlushOrder order,
                   const RingEnd& start, const LogPosition& head,
                   uint64_t ring_capacity, const CompletionTracker& tracker,
                   Forcer<P>& forcer, const Reclaimer<P>& reclaimer,
                   Progress& progress, LogFailure& failure);

  Lsn durable_lsn() const {
    return Lsn(durable_lsn_.load(std::memory_order_acquire));
  }
  // For the reserver's gates.
  const std::atomic<uint64_t>& durable_lsn_word() const { return durable_lsn_; }
  const std::atomic<uint64_t>& reuse_limit_word() const { return reuse_limit_; }

  // One step towards making all records up to `lsn` durable. kWaiting: an
  // earlier record is open, acks are to come, or another thread steps; whoever
  // that is notifies when it is done, so that the caller may sleep.
  Progressed Step(Lsn lsn);

  // Takes what arrived, and tells the published head; forces nothing. Of a log
  // that failed, too: others may be reached through the same sink.
  void Poll() { TryStep(Lsn(0)); }
  // Poll, if the published head has moved.
  void PollIfHeadMoved();

  // The log rests: the backups hear what is durable. True if they do, or have;
  // false if another thread steps: to be called again.
  bool TellDurable();

  // After a Step: false if another thread's step stood in its way, and nobody
  // has taken the request over.
  bool IsBegun(Lsn lsn) const {
    return offered_lsn() >= lsn ||
           missed_.load(std::memory_order_acquire) <= lsn.value;
  }
  // Somebody who waits for that, and for nothing that is news: whoever takes
  // requests over notifies.
  class Beginner {
   public:
    explicit Beginner(ReplicatedForcer& forcer) : forcer_(forcer) {
      forcer_.beginners_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Beginner() { forcer_.beginners_.fetch_sub(1, std::memory_order_release); }
    Beginner(const Beginner&) = delete;
    Beginner& operator=(const Beginner&) = delete;

   private:
    ReplicatedForcer& forcer_;
  };

  // Up to here the backups have been told.
  Lsn offered_lsn() const {
    return Lsn(offered_lsn_.load(std::memory_order_acquire));
  }
  // True if backups could still make records durable or bytes free.
  bool AwaitsBackups() const;
  // The head that W replicas have in their superlines.
  Lsn durable_head_lsn() const {
    return Lsn(durable_head_lsn_.load(std::memory_order_acquire));
  }
  // As of the last step: as ReplicationState::is_idle.
  bool is_idle() const { return is_idle_.load(std::memory_order_acquire); }
  // As of the last step: as ReplicationState::is_catching_up.
  bool is_catching_up() const {
    return is_catching_up_.load(std::memory_order_acquire);
  }

 private:
  void TryStep(Lsn lsn);
  void LeaveRequest(Lsn lsn);
  // What a step leaves to do when the lock is free again.
  struct Stepped {
    bool is_news = false;  // to notify of
    absl::Status status;   // the sink's, if something about it has changed
  };
  Stepped StepLocked(Lsn lsn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  // True if the sink may say something new: it was told something, or polled
  // and had something.
  bool Exchange(Lsn lsn) ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  // True if there is something to notify of.
  bool Publish(const ReplicationState& sink)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  // Afterwards `word` is at least `value`; true if it was not.
  static bool Raise(std::atomic<uint64_t>& word, uint64_t value);
  // True if the sink was polled, with what was offered.
  bool OfferFinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  RingEnd FindFinished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  bool TellHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);

  ReplicationSink& sink_;
  const FlushOrder order_;
  const uint64_t ring_capacity_;
  const RingOffset first_head_;
  const CompletionTracker& tracker_;
  Forcer<P>& forcer_;
  const Reclaimer<P>& reclaimer_;
  Progress& progress_;
  LogFailure& failure_;

  // Written by the holder of step_mutex_.
  alignas(kLineBytes) std::atomic<uint64_t> durable_lsn_;
  std::atomic<uint64_t> reuse_limit_;
  std::atomic<uint64_t> offered_lsn_;  // offered_.lsn
  std::atomic<uint64_t> durable_head_lsn_;
  std::atomic<bool> is_idle_{true};
  std::atomic<bool> is_catching_up_{false};
  std::atomic<uint64_t> told_limit_;  // the reuse limit that the sink knows

  // What those asked for who found the step taken: their largest LSN + 1, or 0.
  alignas(kLineBytes) std::atomic<uint64_t> missed_{0};
  std::atomic<uint32_t> beginners_{0};
  Mutex step_mutex_;
  RingEnd offered_ ABSL_GUARDED_BY(step_mutex_);
  // What the sink says was published once.
  bool has_published_ ABSL_GUARDED_BY(step_mutex_) = false;
  // The next step tells what is durable.
  std::atomic<bool> is_to_tell_{false};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_FORCER_H_
