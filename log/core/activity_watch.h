// SPDX-License-Identifier: Apache-2.0
// activity_watch: who waits for the network while all wait for the log.
//
// Idea: in a replicated log nothing becomes durable unless somebody takes acks
// in. Threads that wait do it themselves as long as they spin. Of those that
// would sleep one takes the role of the watch: it waits in the sink, where an
// ack wakes it, and steps for all; the others sleep on Progress, as in a local
// log. The watch holds no lock while it waits, so that an append that has
// something to post never waits for it.
//
// Why no wake-up is lost (all words below are seq_cst):
//   1. Something becomes durable, completed or free: whoever did it calls
//      Notify. Who waits has announced itself and then stepped once more, so
//      either that step saw it, or Notify sees the announcement (waiter.h) and
//      moves the generation, then calls WakeAll. A sleeper is woken by the
//      generation. The watch sets watched_, then looks at the generation; the
//      notifier moves the generation, then looks at watched_: one of them sees
//      the other. Wake is remembered by the sink, so it may come before the
//      wait.
//   2. Something arrives: WaitForActivity returns at once as long as Poll may
//      have something. If another thread takes it first, what it publishes is
//      a case of 1.
//   3. The watch goes home: it clears watched_, then notifies. A thread that
//      found the role taken had announced itself before, so it is seen and
//      woken, steps, and takes the role.
//   4. Two steps at once: see ReplicatedForcer::Step.
//   5. A step runs a callback, and the callback waits: within the watch's own
//      wait. Nobody else would wait in the sink for it, so it does so itself;
//      the role stays with the outer call.
//   6. The attendant waits in nobody's name (WaitForAcks of ring_log.h), and
//      leaves the sink to calls that are there. It says that it sleeps, then
//      counts them; the last call to leave counts itself out, having cleared
//      watched_, then looks for the attendant. It is stopped in the same way,
//      by a word: it says where it waits, be it here or in the sink, then looks
//      at the word; who stops it sets the word, then calls WakeAll for it.
//   7. The attendant has nothing to do and rests: it says so, then looks once
//      more whether it has; who gives it something (a callback for what is on
//      its way) stores that, then looks whether it rests.
// Thread safety: all members concurrently; a Role by its thread.
// References: protocol P-A3.3 ("waiting is not serialised"); log/base/waiter.h.
#ifndef ALPHEUS_LOG_CORE_ACTIVITY_WATCH_H_
#define ALPHEUS_LOG_CORE_ACTIVITY_WATCH_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "log/base/deadline.h"
#include "log/base/thread_token.h"
#include "log/base/waiter.h"
#include "log/core/replication_sink.h"

namespace alpheus {

// The waiter of a replicated log: wakes the watch, too.
class ActivityWatch final : public Waiter {
 public:
  ActivityWatch(Waiter& waiter, ReplicationSink& sink)
      : waiter_(waiter), sink_(sink) {}

  bool Spin(int round) override { return waiter_.Spin(round); }
  void Wait(const std::atomic<uint32_t>& generation, uint32_t seen,
            Deadline deadline) override {
    waiter_.Wait(generation, seen, deadline);
  }
  void WakeAll(const std::atomic<uint32_t>& generation) override {
    waiter_.WakeAll(generation);
    if (watched_.load(std::memory_order_seq_cst) != 0) sink_.Wake();
    if (stop_.load(std::memory_order_seq_cst) == &generation) {
      WakeAttendant();
      CallAttendant();
    }
  }

  // Whether a call is in the middle of waiting, spinning or asleep: it takes in
  // what arrives.
  bool has_callers() const {
    return callers_.load(std::memory_order_seq_cst) != 0;
  }

  // Sleeps until the last of them has left, `stop` is not 0, or the deadline
  // has passed; or for no reason. By one thread at a time, the attendant.
  void WaitForCallersToLeave(const std::atomic<uint32_t>& stop,
                             Deadline deadline) {
    attendant_.store(1, std::memory_order_seq_cst);
    stop_.store(&stop, std::memory_order_seq_cst);
    if (has_callers() && stop.load(std::memory_order_seq_cst) == 0) {
      waiter_.Wait(attendant_, 1, deadline);
    }
    stop_.store(nullptr, std::memory_order_relaxed);
    attendant_.store(0, std::memory_order_relaxed);
  }

  // Sleeps until it is called, unless `is_needed` then, `stop` is not 0, or the
  // deadline has passed; or for no reason. By the attendant, which has nothing
  // to do. Not woken by calls that leave.
  void WaitToBeCalled(const std::atomic<uint32_t>& stop, Deadline deadline,
                      absl::FunctionRef<bool()> is_needed) {
    resting_.store(1, std::memory_order_seq_cst);
    stop_.store(&stop, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!is_needed() && stop.load(std::memory_order_seq_cst) == 0) {
      waiter_.Wait(resting_, 1, deadline);
    }
    stop_.store(nullptr, std::memory_order_relaxed);
    resting_.store(0, std::memory_order_relaxed);
  }
  // There is something to do for it, stored before a seq_cst fence.
  void CallAttendant() {
    if (resting_.load(std::memory_order_seq_cst) == 0) return;
    resting_.store(0, std::memory_order_seq_cst);
    waiter_.WakeAll(resting_);
  }

  // One waiting call's share in the role; null watch: a local log.
  class Role {
   public:
    Role(ActivityWatch* watch, Progress& progress)
        : watch_(watch), progress_(progress) {
      if (watch_ != nullptr) {
        watch_->callers_.fetch_add(1, std::memory_order_seq_cst);
      }
    }
    ~Role() {
      if (watch_ == nullptr) return;
      if (held_) HandOn();
      if (watch_->callers_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
        watch_->WakeAttendant();
      }
    }
    Role(const Role&) = delete;
    Role& operator=(const Role&) = delete;

    // As Progress::Wait, of a thread that has announced itself.
    void Wait(uint32_t seen, Deadline deadline) {
      if (watch_ == nullptr || !IsMine()) {
        return progress_.Wait(seen, deadline);
      }
      if (!progress_.HasMoved(seen)) watch_->sink_.WaitForActivity(deadline);
    }

    // For the attendant, which wants to know of what arrives and nothing else,
    // and is not announced. False if another thread waits for that, or `stop`
    // is not 0.
    bool WaitForArrivals(const std::atomic<uint32_t>& stop, Deadline deadline) {
      if (!IsMine()) return false;
      if (stop.load(std::memory_order_seq_cst) != 0) return false;
      watch_->sink_.WaitForActivity(deadline);
      return true;
    }

   private:
    void HandOn() {
      watch_->watched_.store(0, std::memory_order_seq_cst);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      progress_.Notify();
    }

    // Takes the role if it is free. True if this thread has it: by this call,
    // or by one around it.
    bool IsMine() {
      if (held_) return true;
      const uint32_t self = ThreadToken();
      uint32_t watch = 0;
      held_ = watch_->watched_.compare_exchange_strong(watch, self);
      return held_ || watch == self;
    }

    ActivityWatch* const watch_;
    Progress& progress_;
    bool held_ = false;
  };

 private:
  void WakeAttendant() {
    if (attendant_.load(std::memory_order_seq_cst) == 0) return;
    attendant_.store(0, std::memory_order_seq_cst);
    waiter_.WakeAll(attendant_);
  }

  Waiter& waiter_;
  ReplicationSink& sink_;
  std::atomic<uint32_t> watched_{0};  // token of the watch; 0: there is none
  std::atomic<uint32_t> callers_{0};
  std::atomic<uint32_t> attendant_{0};  // 1: sleeps until callers have left
  std::atomic<uint32_t> resting_{0};    // 1: sleeps until it is called
  std::atomic<const std::atomic<uint32_t>*> stop_{nullptr};  // its word
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_ACTIVITY_WATCH_H_
