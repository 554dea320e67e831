// SPDX-License-Identifier: Apache-2.0
// replicated_forcer: makes finished records durable on W replicas.
//
// Idea: in a replicated log the Forcer knows what the log's own replica has
// persisted, and the sink (replication_sink.h) knows what W replicas have. One
// step joins them:
//   1. find the finished records;
//   2. offer them to the sink, which sends them;
//   3. force them here, and report that to the sink;
//   4. process what arrived;
//   5. publish the new durable LSN.
// Waiting threads step, one at a time. Posting is short, and no thread holds
// the step while it waits for an ack, so that many batches are in flight at
// once. Records that finish during a step go out with the next one.
//
// FlushOrder is the order of 2 and 3. The backups' work, and the moment from
// which the own replica counts, are the same in all orders.
//
// Invariants:
//   RF1. durable_lsn() <= the sink's durable LSN, and <= the LSN that this
//        replica has persisted. (The second also holds for a log in plain
//        memory, whose replica counts for nothing; it costs nothing there.) So
//        a slot of the CompletionTracker is free only when neither needs it.
//        Every step forces here what it offered, so that no caller waits for
//        that.
//   RF2. The sink gets a persisted LSN only after its fence (P-H22).
//   RF3. reuse_limit <= the lowest ceiling of all replicas in sync, the own one
//        included (P-L4, P-A3.7). So bytes are reused only when no replica
//        needs the old ones after a crash, and written only where each would
//        look for them. A replica that joins may have a lower ceiling than was
//        allowed before: nothing is posted there until it has the higher one
//        (RSE6 of primary_session.h).
//   RF4. Once the sink or this host's medium fails, no further record becomes
//        durable (P-H20). LogFailure reports it to all callers (P-F7). The sink
//        of a log whose medium failed is ended: if it went on, other nodes
//        would hear a primary that can append nothing, and elect no other.
//   RF5. When is_idle() becomes false, the thread that changed it notifies:
//        another thread that saw true and announced itself may sleep.
//   RF6. Confirmations are numbered *rounds*, one after the other. A call waits
//        for the round after the last one that had begun when it asked, so that
//        its round begins after the call (P-A3.8). All calls that ask meanwhile
//        share the next one. A round that is asked for begins as soon as none
//        is under way: the thread whose step ends the last one sees to it.
// Thread safety: all members concurrently. step_mutex_ is only ever tried: a
// thread that finds it taken leaves its request there.
// May block: a step waits for no ack, no open record and no other step. It may
// wait for the fence of its own batch (on a plain file: for the disk), for page
// faults of the ring, for the locks of the Forcer, for the Reclaimer's lock
// (another thread may hold it over a superline update), and for what the sink's
// Poll waits for (replication_sink.h). Other threads then don't step.
// References: protocol P-A3.3, P-A3.6, P-A3.8, P-L4, P-H20, P-H22, P-H23;
// Arcadia §4.3, §4.4, §5.3.
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
#include "log/core/space/ceiling.h"
#include "log/core/space/reclaimer.h"
#include "log/core/write/completion_tracker.h"
#include "log/core/write/log_failure.h"
#include "log/pmem/persistence.h"

namespace alpheus {

template <Persistence P>
class ReplicatedForcer {
 public:
  using Progressed = typename Forcer<P>::Progressed;

  // Requires: everything up to `start` is durable, and `bounds` are in the
  // superline of every replica. Only this object calls `forcer` while threads
  // append.
  ReplicatedForcer(ReplicationSink& sink, FlushOrder order,
                   const RingEnd& start, const RingBounds& bounds,
                   const CompletionTracker& tracker, Forcer<P>& forcer,
                   Reclaimer<P>& reclaimer, Progress& progress,
                   LogFailure& failure);

  Lsn durable_lsn() const {
    return Lsn(durable_lsn_.load(std::memory_order_acquire));
  }
  // Words for the reserver's gates, and for callbacks. Up to the last one all
  // replicas that were in sync at some moment have persisted the log.
  const std::atomic<uint64_t>& durable_lsn_word() const { return durable_lsn_; }
  const std::atomic<uint64_t>& in_sync_lsn_word() const { return in_sync_lsn_; }
  const std::atomic<uint64_t>& reuse_limit_word() const { return reuse_limit_; }

  // Makes one step towards making all records up to `lsn` durable; with LSN 0
  // forces nothing. Processes what arrived, and sends the published head. Does
  // nothing if another thread steps. If `lsn` is not durable on return, an
  // earlier record is open, an ack is in flight, or another thread steps. Some
  // thread notifies when that ends, so that the caller may sleep. Works on a
  // failed log too, since other nodes may be reached through the same sink.
  // `then`: what the caller does next. One that waits may leave it to its wait
  // to send.
  enum class Then { kGoesOn, kWaits };
  void Poll(Lsn lsn = Lsn(0), Then then = Then::kGoesOn);
  // Polls if the published head has moved.
  void PollIfHeadMoved();

  // Sends the durable LSN to the backups of an idle log. Returns false if
  // another thread holds the step; call again.
  bool AnnounceDurable();

  // Returns whether a force of `lsn` has begun, after a Poll. False: another
  // thread held the step, and no thread has adopted the request yet.
  bool IsBegun(Lsn lsn) const {
    return offered_lsn() >= lsn ||
           missed_.load(std::memory_order_acquire) <= lsn.value;
  }
  // RAII: registers a thread that waits for IsBegun, so that the thread that
  // adopts its request wakes it.
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

  // Asks for a confirmation of the epoch. Returns the number of its round,
  // which is over once confirmed_round() has reached it. A Poll must follow.
  uint64_t AskToConfirm();
  uint64_t confirmed_round() const {
    return confirmed_round_.load(std::memory_order_acquire);
  }
  const std::atomic<uint64_t>& confirmed_round_word() const {
    return confirmed_round_;
  }

  // Returns the LSN up to which records were offered to the backups.
  Lsn offered_lsn() const {
    return Lsn(offered_lsn_.load(std::memory_order_acquire));
  }
  // Returns true if acks could still make records durable or bytes free.
  bool AwaitsBackups() const;
  // Returns the head that W replicas have in their superlines.
  Lsn durable_head_lsn() const {
    return Lsn(durable_head_lsn_.load(std::memory_order_acquire));
  }
  // ReplicationState::is_idle as of the last step.
  bool is_idle() const { return is_idle_.load(std::memory_order_acquire); }
  // ReplicationState::is_catching_up as of the last step.
  bool is_catching_up() const {
    return is_catching_up_.load(std::memory_order_acquire);
  }

 private:
  // Makes one step. Returns false if another thread has it.
  bool TryStep(Lsn lsn, Then then);
  void LeaveRequest(Lsn lsn);
  // Returns true if a round was asked for, and none is under way.
  bool IsRoundDue() const;
  // Begins the round that is due. Returns false if none is.
  bool BeginRound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  // Work that a step leaves for when the lock is free again.
  struct Stepped {
    bool is_news = false;  // waiting threads must be notified
    absl::Status status;   // of the sink; OK if nothing has changed
  };
  Stepped StepLocked(Lsn lsn, Then then)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  // Returns true if waiting threads must be notified.
  bool Publish(const ReplicationState& sink)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  // Raises `word` to `value`. Returns false if it was that high already.
  static bool Raise(std::atomic<uint64_t>& word, uint64_t value);
  // Offers the finished records and forces them here. Returns true if the sink
  // was polled with them.
  bool OfferFinished(Then then) ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  RingEnd FindFinished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  bool AnnounceHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);
  void EndSinkIfFailed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mutex_);

  ReplicationSink& sink_;
  const FlushOrder order_;
  const RingOffset first_limit_;
  const CompletionTracker& tracker_;
  Forcer<P>& forcer_;
  Reclaimer<P>& reclaimer_;
  Progress& progress_;
  LogFailure& failure_;

  // Written by the holder of step_mutex_.
  alignas(kLineBytes) std::atomic<uint64_t> durable_lsn_;
  std::atomic<uint64_t> in_sync_lsn_;
  std::atomic<uint64_t> reuse_limit_;
  std::atomic<uint64_t> offered_lsn_;  // offered_.lsn
  std::atomic<uint64_t> durable_head_lsn_;
  std::atomic<bool> is_idle_{true};
  std::atomic<bool> is_catching_up_{false};
  std::atomic<uint64_t> announced_{0};  // publications that the sink knows
  std::atomic<uint64_t> begun_round_{0};
  std::atomic<uint64_t> confirmed_round_{0};

  // Highest round that a call waits for; at most begun_round_ + 1.
  alignas(kLineBytes) std::atomic<uint64_t> asked_round_{0};
  // Largest LSN + 1 requested by threads that found the step taken; 0: none.
  alignas(kLineBytes) std::atomic<uint64_t> missed_{0};
  std::atomic<uint32_t> beginners_{0};
  Mutex step_mutex_;
  RingEnd offered_ ABSL_GUARDED_BY(step_mutex_);
  // The sink's state was published at least once.
  bool has_published_ ABSL_GUARDED_BY(step_mutex_) = false;
  bool has_ended_sink_ ABSL_GUARDED_BY(step_mutex_) = false;
  // The next step sends the durable LSN to the backups.
  std::atomic<bool> is_to_announce_{false};
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_REPLICATED_FORCER_H_
