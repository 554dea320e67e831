// SPDX-License-Identifier: Apache-2.0
// activity_watch: decides which waiting thread polls the network.
//
// Idea: in a replicated log nothing becomes durable unless some thread
// processes acks. A waiting thread does so itself while it spins. Before it
// sleeps it tries to take the role of the network waiter. One thread at a time
// has that role: it waits in the sink, where an ack wakes it, and steps for
// all. The other waiting threads sleep on Progress, as in a local log. The
// network waiter holds no lock while it waits, so that an append that posts
// never waits for it.
//
// The ack poller is the log's own thread (WaitForAcks of ring_log.h). It polls
// the sink only while no call is waiting.
//
// Why no wake-up is lost. All words below are seq_cst. Most cases are one
// pattern: each of two threads stores its own word, then reads the other's, so
// that at least one of them sees the other:
//
//   sleeper:  store "I sleep",        then read "is there news?"
//   waker:    store "there is news",  then read "does it sleep?"
//
//   1. A record becomes durable or completed, or space becomes free. The thread
//      that did it calls Notify.
//      A sleeper first announces itself, then steps once more. Either that step
//      sees the news, or Notify sees the announcement (waiter.h), moves the
//      generation and calls WakeAll. The generation wakes the sleeper.
//      The network waiter stores network_waiter_, then reads the generation;
//      the notifier moves the generation, then reads network_waiter_. The sink
//      remembers a Wake, so that it may come before the wait.
//   2. A message arrives. WaitForActivity returns at once while Poll may have
//      something. If another thread takes the message first, it publishes the
//      result, which is case 1.
//   3. The network waiter leaves. It clears network_waiter_, then notifies. A
//      thread that found the role taken had announced itself before. So it is
//      woken, steps, and takes the role.
//   4. Two steps at once: see ReplicatedForcer::Poll.
//   5. A step runs a callback that waits, inside the network waiter's own wait.
//      No other thread would wait in the sink for it, so the callback does. The
//      role stays with the outer call.
//   6. The ack poller waits for calls to leave. It stores ack_poller_, then
//      reads the count of waiters; the last waiter decrements the count, after
//      network_waiter_ is cleared, then reads ack_poller_. Stopping: the poller
//      stores where it waits (network_waiter_ in the sink, else stop_, the
//      address of the stop word), then reads the stop word. The stopping thread
//      sets the stop word, then reads both in WakeAll.
//   7. The ack poller has nothing to do and sleeps. It stores sleeping_, then
//      checks for work once more; a thread that adds work (a callback for an
//      LSN that is in flight) stores the work, then reads sleeping_.
// Thread safety: all members concurrently; a Role by its thread.
// References: protocol P-A3.3 (steps are one at a time, waiting is not);
// log/base/waiter.h.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_ACTIVITY_WATCH_H_
#define ALPHEUS_LOG_CORE_DURABILITY_ACTIVITY_WATCH_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "log/base/deadline.h"
#include "log/base/thread_token.h"
#include "log/base/waiter.h"
#include "log/core/durability/replication_sink.h"

namespace alpheus {

// Waiter of a replicated log. WakeAll wakes the network waiter and the ack
// poller too.
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
    if (network_waiter_.load(std::memory_order_seq_cst) != 0) sink_.Wake();
    if (stop_.load(std::memory_order_seq_cst) == &generation) {
      WakeAckPoller();
      CallAckPoller();
    }
  }

  // Returns whether a call is waiting, spinning or asleep. Such a call
  // processes what arrives.
  bool has_waiters() const {
    return waiters_.load(std::memory_order_seq_cst) != 0;
  }

  // Sleeps until the last waiter has left, `stop` is not 0, or the deadline has
  // passed. May return without a reason. Called by one thread at a time, the
  // ack poller.
  void WaitForWaitersToLeave(const std::atomic<uint32_t>& stop,
                             Deadline deadline) {
    ack_poller_.store(1, std::memory_order_seq_cst);
    stop_.store(&stop, std::memory_order_seq_cst);
    if (has_waiters() && stop.load(std::memory_order_seq_cst) == 0) {
      waiter_.Wait(ack_poller_, 1, deadline);
    }
    stop_.store(nullptr, std::memory_order_relaxed);
    ack_poller_.store(0, std::memory_order_relaxed);
  }

  // Sleeps until CallAckPoller, unless `is_needed()` or `stop` is not 0
  // already; at most until the deadline. May return without a reason. Called by
  // the ack poller when it has nothing to do. Calls that leave don't wake it.
  void WaitToBeCalled(const std::atomic<uint32_t>& stop, Deadline deadline,
                      absl::FunctionRef<bool()> is_needed) {
    sleeping_.store(1, std::memory_order_seq_cst);
    stop_.store(&stop, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!is_needed() && stop.load(std::memory_order_seq_cst) == 0) {
      waiter_.Wait(sleeping_, 1, deadline);
    }
    stop_.store(nullptr, std::memory_order_relaxed);
    sleeping_.store(0, std::memory_order_relaxed);
  }
  // Wakes the ack poller if it sleeps. Requires: the work for it was stored
  // before a seq_cst fence.
  void CallAckPoller() {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
    sleeping_.store(0, std::memory_order_seq_cst);
    waiter_.WakeAll(sleeping_);
  }

  // RAII: counts one waiting call, and holds the network waiter's role if the
  // call gets it.
  class Role {
   public:
    Role(ActivityWatch& watch, Progress& progress)
        : watch_(watch), progress_(progress) {
      watch_.waiters_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Role() {
      if (has_role_) PassOn();
      if (watch_.waiters_.fetch_sub(1, std::memory_order_seq_cst) == 1) {
        watch_.WakeAckPoller();
      }
    }
    Role(const Role&) = delete;
    Role& operator=(const Role&) = delete;

    // Waits as Progress::Wait does. Requires: the thread has announced itself.
    void Wait(uint32_t seen, Deadline deadline) {
      if (!IsMine()) return progress_.Wait(seen, deadline);
      if (!progress_.HasMoved(seen)) watch_.sink_.WaitForActivity(deadline);
    }

    // Waits for arrivals only, not announced; for the ack poller. Returns false
    // if another thread has the role, or `stop` is not 0.
    bool WaitForArrivals(const std::atomic<uint32_t>& stop, Deadline deadline) {
      if (!IsMine()) return false;
      if (stop.load(std::memory_order_seq_cst) != 0) return false;
      watch_.sink_.WaitForActivity(deadline);
      return true;
    }

   private:
    void PassOn() {
      watch_.network_waiter_.store(0, std::memory_order_seq_cst);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      progress_.Notify();
    }

    // Takes the role if it is free. Returns true if this thread has it, by this
    // call or by an outer one.
    bool IsMine() {
      if (has_role_) return true;
      const uint32_t self = ThreadToken();
      uint32_t watch = 0;
      has_role_ = watch_.network_waiter_.compare_exchange_strong(watch, self);
      return has_role_ || watch == self;
    }

    ActivityWatch& watch_;
    Progress& progress_;
    bool has_role_ = false;
  };

 private:
  void WakeAckPoller() {
    if (ack_poller_.load(std::memory_order_seq_cst) == 0) return;
    ack_poller_.store(0, std::memory_order_seq_cst);
    waiter_.WakeAll(ack_poller_);
  }

  Waiter& waiter_;
  ReplicationSink& sink_;
  std::atomic<uint32_t> network_waiter_{0};  // its token; 0: there is none
  std::atomic<uint32_t> waiters_{0};         // calls that wait
  std::atomic<uint32_t> ack_poller_{0};  // 1: sleeps until waiters have left
  std::atomic<uint32_t> sleeping_{0};    // 1: sleeps until CallAckPoller
  std::atomic<const std::atomic<uint32_t>*> stop_{nullptr};  // stop word
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_ACTIVITY_WATCH_H_
