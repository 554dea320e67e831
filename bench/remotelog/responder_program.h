// SPDX-License-Identifier: Apache-2.0
// responder_program: the server's one thread: it answers messages, and after
// that applies records and trims the log.
//
// Idea: the cost of a message follows from the row's responder steps: lines
// that are loaded, owned, written back and fenced, an ack that is posted. A row
// without such steps leaves messages and records too, which take the same
// thread's time when it has nothing to answer. A piece of work is never
// interrupted, so an apply or a trim may delay an answer.
//
// Invariants:
//   RP1. Messages are taken in the order in which they became visible.
//   RP2. Each update is applied once: after its last step of the responder, or
//        when all its bytes are visible.
// Thread safety: none.
// References: remote persistence taxonomy §4.1 (the server collects applied
// records).
#ifndef ALPHEUS_BENCH_REMOTELOG_RESPONDER_PROGRAM_H_
#define ALPHEUS_BENCH_REMOTELOG_RESPONDER_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "bench/remotelog/costs.h"
#include "bench/remotelog/event_queue.h"
#include "bench/remotelog/responder_adapter.h"
#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::bench::remotelog {

class ResponderProgram {
 public:
  // Called when an ack was posted on this connection.
  using PostAck = std::function<void(size_t connection)>;

  ResponderProgram(const Costs& costs, const replication::Platform& platform,
                   std::span<const replication::Step> steps, size_t connections,
                   EventQueue* queue, PostAck post_ack);

  void BytesAreVisible(const Operation& operation);
  void MessageIsVisible(const Operation& operation);

  double message_time() const { return message_time_; }
  double background_time() const { return background_time_; }

 private:
  void Advance();
  void Answer(const Operation& message);
  void Apply();
  void BeBusy(double until_answered, double behind);
  double CostOf(const replication::Step& step, const Operation& message) const;
  double CopyCost(replication::UpdatePart part, bool flushes) const;
  double LoadOfMessage() const;

  const Costs costs_;
  const replication::Platform platform_;
  EventQueue* const queue_;
  const PostAck post_ack_;
  std::vector<replication::Step> steps_;  // the responder's
  // Part of a message whose buffer is the log until it is applied.
  replication::UpdatePart copied_later_ = replication::UpdatePart::kNone;
  std::vector<size_t> at_;  // by connection: index into steps_
  std::deque<Operation> messages_;
  uint64_t unapplied_ = 0;
  uint64_t untrimmed_ = 0;
  bool is_busy_ = false;
  double message_time_ = 0;
  double background_time_ = 0;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_RESPONDER_PROGRAM_H_
