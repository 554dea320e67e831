// SPDX-License-Identifier: Apache-2.0
// requester_program: a client that appends again and again, step by step.
//
// Idea: it posts without a pause, and at a wait it polls until the completion
// comes. Each wait takes one completion: only awaited operations ask for one,
// and completions come in the order of the waits.
//
// Thread safety: none.
// References: remote persistence taxonomy §4.1, §4.2 (busy waiting).
#ifndef ALPHEUS_BENCH_REMOTELOG_REQUESTER_PROGRAM_H_
#define ALPHEUS_BENCH_REMOTELOG_REQUESTER_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/remotelog/costs.h"
#include "bench/remotelog/event_queue.h"
#include "bench/remotelog/responder_adapter.h"
#include "replication/persist/platform/method.h"

namespace alpheus::bench::remotelog {

class RequesterProgram {
 public:
  // Called when the adapter has got an operation.
  using Post = std::function<void(const Operation&)>;

  RequesterProgram(const Costs& costs, std::span<const replication::Step> steps,
                   size_t connection, uint64_t appends, EventQueue* queue,
                   Post post);

  void Start();
  // Notes that a completion, or an ack, can be polled from now on.
  void CompletionIsVisible();

  bool is_done() const { return latencies_.size() == appends_; }
  const std::vector<double>& latencies() const { return latencies_; }

 private:
  void Advance();
  void PostStep();
  void Poll();
  void EndAppend();

  const Costs costs_;
  EventQueue* const queue_;
  const Post post_;
  const uint64_t appends_;
  std::vector<replication::Step> steps_;  // the requester's
  std::vector<Operation> operations_;     // one for each step that is no wait
  size_t at_ = 0;
  bool is_waiting_ = false;
  uint64_t completions_ = 0;
  double began_ = 0;
  std::vector<double> latencies_;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_REQUESTER_PROGRAM_H_
