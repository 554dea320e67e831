// SPDX-License-Identifier: Apache-2.0
// queue_pair: one reliable connection's queues, and the outcome of each entry.
//
// Idea: entries posted in a row are linked and handed to the adapter by one
// doorbell. Only the last entry of such a chain asks for a completion: it says
// that all before it are done. A failure has a completion in any case, so FB3
// holds.
// Operations that the adapter lacks are replaced: a flush is a read of the last
// byte of the range, into bytes that nobody reads. Where there is a FLUSH that
// covers as much, it is used (native_sends.h).
//
// Invariants:
//   QP1. Entries are numbered in the order of posting, and complete in that
//        order; each exactly once (FB3).
//   QP2. The completion queue has room for all that may be posted (FB9, P-R3).
//   QP3. When Destroy has returned the adapter moves no byte of this connection
//        any more, in either direction: the queue pair has been destroyed (FB5,
//        P-R2). An error state would not do. An adapter that was taken away
//        took its queue pairs with it.
//   QP4. An operation after an own read or atomic waits for it
//        (IBV_SEND_FENCE). Without that a later write may get into an earlier
//        read (FB1). A flush is not waited for: a later operation may land
//        early.
//   QP5. A new queue pair is armed: the completion channel reports its first
//        completion. So a queue pair may be made by a thread about to sleep, or
//        while others sleep (VF4, verbs_fabric.h).
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
#include "replication/fabric/verbs/device_news.h"
#include "replication/fabric/verbs/handles.h"
#include "replication/fabric/verbs/native_sends.h"
#include "replication/fabric/verbs/options.h"

namespace alpheus::fabric::verbs {

// Entries that the fabric posts itself, for greetings.
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
    DeviceNews* news = nullptr;  // nullptr: the adapter is never taken away
  };

  // Creates it on `id`, which must outlive it, for `connection`. Errors:
  // Unavailable.
  static absl::StatusOr<std::unique_ptr<QueuePair>> Make(
      rdma_cm_id* id, ConnectionId connection, const Making& making);
  ~QueuePair() { Destroy(); }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // Completions in order: the user's go straight to where they are taken from,
  // and the fabric's own.
  struct Done {
    std::vector<Completion>* completions;
    std::vector<Completion>* greetings;
  };

  // Posts a request. Requires: there is room, the chain is not full, and the
  // request was checked; `own` names its bytes.
  void Post(const WorkRequest& request, const ibv_sge& own);
  void PostGreeting(const ibv_sge& own);
  // Hands a receive to the adapter at once.
  absl::Status PostReceive(WorkId work, const ibv_sge& into,
                           bool is_greeting = false);
  // Requires: not destroyed.
  uint32_t number() const { return id_->qp->qp_num; }
  size_t sends() const { return sends_.size(); }
  size_t receives() const { return receives_.size(); }

  // Hands posted entries to the adapter. Errors: Unavailable (the adapter
  // refuses: break the connection).
  absl::Status RingDoorbell();
  // True if entries wait for the doorbell; true if they must not wait longer.
  bool has_chain() const { return chained_ != 0; }
  bool is_chain_full() const { return chained_ == chain_.size(); }

  // Takes completions. Returns false once something failed: break the
  // connection.
  bool DrainCompletions(const Done& done);
  // Makes the completion channel report the next completion.
  void Arm();
  void CountEvent() { ++events_; }
  const ibv_cq* completion_queue() const { return queue_.get(); }

  // Sets the time after which a peer without a receive is asked again.
  absl::Status SetNotReadyTimer(uint8_t code);

  // Destroys the queue pair. A fence (QP3). Earlier completions can still be
  // polled.
  void Destroy();
  // Completes all unfinished work as kFlushed; sends, then receives. Requires:
  // Destroy.
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
  // Adds an entry to the chain, with its number; the caller fills in the rest.
  Entry& Append(const Send& send);
  void Fill(const WorkRequest& request, const ibv_sge& own, Entry* entry) const;
  void SetInline(const LocalBytes& from, Entry* entry) const;
  bool OnCompletion(const ibv_wc& completion, const Done& done);
  bool OnSends(const ibv_wc& completion, const Done& done);
  bool OnReceive(const ibv_wc& completion, const Done& done);

  rdma_cm_id* const id_;
  const ConnectionId connection_;
  const CompletionQueue queue_;
  const uint32_t inline_bytes_max_;
  const ibv_sge flush_target_;
  VerbsFabricCounters& counters_;
  DeviceNews* const news_;
  std::optional<NativeSends> native_;  // empty: the adapter has neither ability

  // The first `chained_` entries are not handed over yet. Entries are reused,
  // so that a caller sets all fields that count.
  std::vector<Entry> chain_;
  size_t chained_ = 0;
  NumberedQueue<Send> sends_;
  NumberedQueue<Receive> receives_;
  uint64_t fetches_ = 0;  // reads and atomics among the sends
  unsigned events_ = 0;
  bool is_whole_ = true;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_QUEUE_PAIR_H_
