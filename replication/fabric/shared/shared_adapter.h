// SPDX-License-Identifier: Apache-2.0
// shared_adapter: one adapter for all logs of a process.
//
// Idea: each user has a port, which is a Fabric with the user's connections and
// regions alone. Users of the same peers then share what the adapter shares,
// such as a socket. Work of many users leaves together and is answered
// together, so that a record of one of sixteen logs costs a fraction of the
// system calls of a record of a log alone.
//
// There is no thread of its own. A thread that waits at a port leads, if nobody
// does: it waits in the adapter, and takes what arrives for all. The others
// sleep, each at a word of its own. The leader gives each port its completions
// and wakes the threads whose ports got some:
//
//   A  waits in the adapter . . . takes 3 | wakes B, C | posts, waits: leads
//   B  sleeps . . . . . . . . . . . . . . . . . . . . .| posts, sleeps
//   C  sleeps . . . . . . . . . . . . . . . . . . . . .| posts, sleeps
//
// Threads that were woken tend to post soon and to wait again. So the leader
// lets them run before it sends what all have posted; a thread that expects
// others leaves the sending to it. That costs a few yields where they don't
// come, and then no more until they do.
//
// Invariants:
//   SHA1. A port gets the completions and events of its own connections, in the
//         adapter's order, and no others.
//   SHA2. While a thread sleeps at a port, another thread leads or has been
//         woken to lead: so what arrives is taken. The leader that leaves wakes
//         one that sleeps.
//   SHA3. What a port has posted is sent by the next Poll without room for
//         completions, by the second one with room, or by the wait, of any of
//         its threads.
//   SHA4. When a port is destroyed its connections are closed and its regions
//         deregistered (FB5 of fabric.h).
//   SHA5. A Wake of a port ends a wait at that port, of now or later.
//   SHA6. A thread that waits for others to post does so for kYieldsMax yields
//         at most, and does not wait again for those who did not come.
// Thread safety: all members concurrently, those of ports too.
// May block: as Fabric. A Poll may wait for another thread's turn.
#ifndef ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_ADAPTER_H_
#define ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_ADAPTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/mutex.h"
#include "log/base/waiter.h"
#include "replication/fabric/fabric.h"

namespace alpheus::fabric {

class SharedAdapter : public std::enable_shared_from_this<SharedAdapter> {
 public:
  // `clock` must be the adapter's, and outlive this.
  SharedAdapter(std::shared_ptr<Fabric> adapter, const Clock& clock)
      : adapter_(std::move(adapter)),
        clock_(clock),
        waiter_(clock, {.spins = 0, .yields = kYieldsMax}) {}

  // Returns a new port, which keeps this alive.
  std::unique_ptr<Fabric> AddPort();

 private:
  class Port;
  // The words at which threads sleep; shared, since a port may be destroyed
  // while a thread is about to wake those at it.
  using Word = std::shared_ptr<std::atomic<uint32_t>>;
  using Words = absl::InlinedVector<Word, 16>;

  static constexpr uint32_t kYieldsMax = 16;

  // Hands over to the adapter what was posted.
  void HandOver();
  // Makes turns unless another thread does.
  void TryTurns();
  // Has the adapter make turns until all that it has is given to the ports;
  // appends the words of threads to wake, after the locks are released.
  void MakeTurns(Words* to_wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_mutex_);
  void Give(std::span<const Completion> completions, Words* to_wake)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_mutex_, mutex_);
  void Give(std::span<const ConnectionEvent> events, Words* to_wake)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_mutex_, mutex_);
  void NoteNews(Port& port, Words* to_wake)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake(const Words& words);
  void Expect(Port& port) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpectNoLonger(Port& port) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets threads run that are expected to post (SHA6).
  void AwaitOthers(const Port& port);
  // Waits in the adapter for all, until the port has something or the deadline
  // has passed. Requires: the calling thread leads.
  void Lead(Port& port, uint64_t wakes, Deadline deadline);
  // Wakes a thread that leads from now on, if nobody does (SHA2).
  void PassOn();

  const std::shared_ptr<Fabric> adapter_;
  const Clock& clock_;
  FutexWaiter waiter_;

  // Held for turns and for what they give, so that ports get it in order.
  Mutex turn_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::array<Completion, 64> completions_ ABSL_GUARDED_BY(turn_mutex_);
  std::vector<ConnectionEvent> events_ ABSL_GUARDED_BY(turn_mutex_);

  Mutex mutex_;
  std::set<Port*> ports_ ABSL_GUARDED_BY(mutex_);
  std::map<ConnectionId, Port*> owners_ ABSL_GUARDED_BY(mutex_);
  Port* listener_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Port* leader_ ABSL_GUARDED_BY(mutex_) = nullptr;     // a thread of it leads
  bool leader_waits_ ABSL_GUARDED_BY(mutex_) = false;  // in the adapter
  // Number of ports whose threads were woken and have not waited since.
  std::atomic<int> expected_{0};
};

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_ADAPTER_H_
