// SPDX-License-Identifier: Apache-2.0
// shared_adapter: one adapter for all logs of a process.
//
// Idea: each user has a share, which is a Fabric with the user's connections
// and regions alone. Shares of one adapter have in common what that has, such
// as a socket to a peer (tcp/trunk.h). Work of many users leaves together and
// is answered together. So a record of one of sixteen logs costs a fraction of
// the system calls that a record of a log alone costs.
//
// The adapter has no thread. One of the threads that wait keeps watch: it waits
// in the adapter, and takes what arrives for all. The others sleep. The watcher
// gives each share its completions, and wakes the threads whose shares got
// some:
//
//   A  keeps watch . . . . . takes 3 | wakes B, C | posts | keeps watch
//   B  sleeps . . . . . . . . . . . . . . . . . . | posts | sleeps
//   C  sleeps . . . . . . . . . . . . . . . . . . | posts | sleeps
//                                                         sends for A, B and C
//
// Threads that were woken tend to post and to wait again soon. So the watcher
// lets them run before it sends what all have posted, and a thread that expects
// others, or a watcher that does, leaves the sending to it. Where they don't
// come that costs a few yields, once.
//
// Invariants:
//   SHA1. A share gets the completions and events of its own connections, in
//         the adapter's order, and no others. It gets an event no earlier than
//         the completions before it: the end of a connection not before the
//         last message.
//   SHA2. While a thread sleeps at a share, another thread keeps watch, or was
//         woken to do so. So what arrives is taken.
//   SHA3. What a share has posted is sent by the next Poll without room for
//         completions, and by the next wait at the latest, of any of its
//         threads. A thread that leaves it to its wait does so only while the
//         watcher, or the next one, has yet to send (sends_for_waiters).
//   SHA4. When a share is destroyed its connections are closed and its regions
//         deregistered (FB5 of fabric.h). If it listened, peers that want to
//         connect are rejected from then on.
//   SHA5. A Wake of a share ends a wait at that share, of now or later.
//   SHA6. A thread that waits for others to post does so for kYieldsMax yields
//         at most, and does not wait again for those who did not come.
//   SHA7. A wait ends, too, once another thread of the share has taken what
//         came, and when the adapter's wait ended and nobody got anything: a
//         timer, or a peer that wrote to memory. Either may be news to a caller
//         who has computed its deadline before.
//   SHA8. A Poll that returns nothing comes after turns that began kFreshNanos
//         before it at most, and whose news are given. So no peer is taken for
//         silent while its message lies unread for longer. As long as the last
//         turns are that fresh, a Poll leaves the next ones to a thread that is
//         at them, and once to those that are expected.
// Thread safety: all members concurrently, those of shares too.
// May block: as Fabric. A Poll may wait for another thread's turn.
#ifndef ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_ADAPTER_H_
#define ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_ADAPTER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
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

  // Returns a new share, which keeps this alive.
  std::unique_ptr<Fabric> AddShare();
  // Returns how many shares there are.
  size_t shares() const;

 private:
  class Share;
  // The words at which threads sleep; shared, since a share may be destroyed
  // while a thread is about to wake those at it.
  using Word = std::shared_ptr<std::atomic<uint32_t>>;
  using Words = absl::InlinedVector<Word, 16>;

  static constexpr uint32_t kYieldsMax = 16;
  // Much longer than a turn, much shorter than any time for which a peer may be
  // silent.
  static constexpr int64_t kFreshNanos = 200'000;

  // Hands over to the adapter what was posted.
  void HandOver();
  // Returns true if turns that began less than kFreshNanos ago have given all.
  bool IsFresh() const;
  // Has the adapter make turns, unless the last ones are fresh and the next one
  // is another thread's, or the caller leaves it to others (SHA8).
  void TakeTurns(bool leaves_turn);
  // Has the adapter make turns until all that it has is given to the shares;
  // appends the words of threads to wake, after the locks are released.
  void MakeTurns(Words* to_wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_mutex_);
  void Give(std::span<const Completion> completions, Words* to_wake)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_mutex_, mutex_);
  void Give(std::span<const ConnectionEvent> events, Words* to_wake)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_mutex_, mutex_);
  void NoteNews(Share& share, Words* to_wake)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake(const Words& words);
  void Expect(Share& share) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExpectNoLonger(Share& share);
  // Lets threads run that are expected to post (SHA6).
  void AwaitOthers(const Share& share);
  // Waits in the adapter for all, until the share has something or the deadline
  // has passed. Requires: the calling thread watches.
  void KeepWatch(Share& share, uint64_t wakes, Deadline deadline);
  void EndAllWaits(Words* to_wake) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes a thread that watches from now on, if nobody does (SHA2).
  void PassOn();

  const std::shared_ptr<Fabric> adapter_;
  const Clock& clock_;
  FutexWaiter waiter_;

  // Held for turns and for what they give, so that shares get it in order.
  Mutex turn_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::array<Completion, 64> completions_ ABSL_GUARDED_BY(turn_mutex_);
  std::vector<ConnectionEvent> events_ ABSL_GUARDED_BY(turn_mutex_);
  // When the last turns began whose news all are given. Written by turns.
  std::atomic<int64_t> read_until_ns_{std::numeric_limits<int64_t>::min() / 2};

  mutable Mutex mutex_;
  std::set<Share*> shares_ ABSL_GUARDED_BY(mutex_);
  std::map<ConnectionId, Share*> owners_ ABSL_GUARDED_BY(mutex_);
  Share* listener_ ABSL_GUARDED_BY(mutex_) = nullptr;
  uint64_t given_ ABSL_GUARDED_BY(mutex_) = 0;        // completions and events
  Share* watcher_ ABSL_GUARDED_BY(mutex_) = nullptr;  // a thread of it watches
  // It waits in the adapter. Written under the lock.
  std::atomic<bool> watcher_waits_{false};
  // Number of shares whose threads were woken, and have neither posted nor
  // waited since.
  std::atomic<int> expected_{0};
  // The watcher awaits those. What was posted before this ends is sent later,
  // by this watcher or the next one.
  std::atomic<bool> watcher_gathers_{false};
};

}  // namespace alpheus::fabric

#endif  // ALPHEUS_REPLICATION_FABRIC_SHARED_SHARED_ADAPTER_H_
