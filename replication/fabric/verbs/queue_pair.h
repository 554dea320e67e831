// SPDX-License-Identifier: Apache-2.0
// queue_pair: one reliable connection's queues, and what became of each entry.
//
// Idea: what is posted in a row is linked and handed to the adapter by one
// doorbell, and only the last entry of such a chain asks for a completion: it
// says that all before it are done. A failure has a completion in any case, so
// nothing of FB3 is lost by that.
// What the adapter can't do it is not asked for: a flush is a read of the last
// byte of the range, into bytes that nobody looks at, but where there is a
// FLUSH and it says as much (native_sends.h).
//
// Invariants:
//   QP1. Entries are numbered in the order of posting, and complete in that
//        order; each exactly once (FB3).
//   QP2. The completion queue has room for all that may be posted (FB9, P-R3).
//   QP3. When Destroy has returned the adapter moves no byte of this connection
//        any more, in either direction: the queue pair has been destroyed (FB5,
//        P-R2); bringing it to an error state would not do. An adapter that was
//        taken away took its queue pairs with it.
//   QP4. What follows an own read or atomic waits for it (IBV_SEND_FENCE):
//        without that a later write may get into an earlier read (FB1). A flush
//        is not waited for: who is behind it may land early.
//   QP5. The completion channel tells of its first completion: it may be made
//        by who is about to sleep, or while others do (VF4, verbs_fabric.h).
// Thread safety: none; the fabric's lock guards it.
// References: ibv_post_send(3), ibv_poll_cq(3); remote persistence taxonomy
// §3.4; protocol P-B0.5, P-R2, P-R3.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_QUEUE_PAIR_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_QUEUE_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/numbered_queue.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/adapter.h"
#include "replication/fabric/verbs/handles.h"
#include "replication/fabric/verbs/native_sends.h"
#include "replication/fabric/verbs/options.h"
#include "replication/fabric/work_request.h"

namespace alpheus::verbs {

// What is posted by the fabric itself, not by its user: a greeting.
inline constexpr uint32_t kGreetingsPosted = 2;

class QueuePair {
 public:
  struct Making {
    ibv_pd* domain = nullptr;
    ibv_comp_channel* channel = nullptr;
    Fabric::Limits limits;
    uint32_t inline_bytes_max = 0;
    ibv_sge flush_target = {};  // 1 byte
    VerbsFabricCounters* counters = nullptr;
    DeviceNews* news = nullptr;  // none: the adapter is never taken away
  };

  // Creates it on `id`, which must outlive it, for `connection`.
  // Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<QueuePair>> Make(
      rdma_cm_id* id, ConnectionId connection, const Making& making);
  ~QueuePair() { Destroy(); }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // What came back, in its order, of one side: the user's, which goes where it
  // is taken from without another stop, and the fabric's own.
  struct Done {
    std::vector<Completion>* completions;
    std::vector<Completion>* greetings;
  };

  // Requires: there is room, the chain is not full, and the request was
  // checked; `own` names its bytes.
  void Post(const WorkRequest& request, const ibv_sge& own);
  void PostGreeting(const ibv_sge& own);
  // Handed to the adapter at once.
  absl::Status PostReceive(WorkId work, const ibv_sge& into,
                           bool is_greeting = false);
  // Requires: not destroyed.
  uint32_t number() const { return id_->qp->qp_num; }
  size_t sends() const { return sends_.size(); }
  size_t receives() const { return receives_.size(); }

  // Hands over what is posted. Errors: Unavailable (the adapter refuses: the
  // connection is to be broken).
  absl::Status RingDoorbell();
  // There is something to hand over; so much that it should not wait.
  bool has_chain() const { return chained_ != 0; }
  bool is_chain_full() const { return chained_ == chain_.size(); }

  // Takes what has completed. Returns false once something failed: the
  // connection is to be broken.
  bool Poll(const Done& done);
  // The completion channel tells of the next completion.
  void Arm();
  void CountEvent() { ++events_; }
  const ibv_cq* completion_queue() const { return queue_.get(); }

  // A peer that has no receive is asked again after so long.
  absl::Status SetNotReadyTimer(uint8_t code);

  // A fence (QP3). What completed before can still be polled.
  void Destroy();
  // All that has not completed, as kFlushed; sends, then receives.
  // Requires: Destroy.
  void Flush(const Done& done);

 private:
  static constexpr size_t kChainMax = 64;

  struct Send {
    Operation operation = Operation::kWrite;
    WorkId work;
    bool is_greeting = false;
  };
  struct Receive {
    WorkId work;
    bool is_greeting = false;
  };
  struct Entry {
    ibv_send_wr request = {};
    ibv_sge own = {};
  };

  QueuePair(rdma_cm_id* id, ConnectionId connection, const Making& making,
            CompletionQueue queue, uint32_t inline_bytes_max);
  // One more of the chain, with its number; the rest is the caller's.
  Entry& Append(const Send& send);
  void Fill(const WorkRequest& request, const ibv_sge& own, Entry* entry) const;
  void SetInline(const LocalBytes& from, Entry* entry) const;
  bool Take(const ibv_wc& completion, const Done& done);
  bool TakeSends(const ibv_wc& completion, const Done& done);
  bool TakeReceive(const ibv_wc& completion, const Done& done);

  rdma_cm_id* const id_;
  const ConnectionId connection_;
  const CompletionQueue queue_;
  const uint32_t inline_bytes_max_;
  const ibv_sge flush_target_;
  VerbsFabricCounters& counters_;
  DeviceNews* const news_;
  std::optional<NativeSends> native_;  // none: the adapter has nothing of it

  // Not handed over yet: the first `chained_`. Entries are used again and
  // again, and whoever fills one sets all that is asked for.
  std::vector<Entry> chain_;
  size_t chained_ = 0;
  NumberedQueue<Send> sends_;
  NumberedQueue<Receive> receives_;
  uint64_t fetches_ = 0;  // own reads and atomics among the sends
  unsigned events_ = 0;
  bool is_whole_ = true;
};

}  // namespace alpheus::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_QUEUE_PAIR_H_
