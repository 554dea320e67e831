// SPDX-License-Identifier: Apache-2.0
// responder_adapter: when what arrives at a server is received, visible, and
// answered.
//
// Idea: an operation is received, then a write crosses PCIe to the root complex
// and goes from there into the cache, or to the memory controller. A completion
// is another write, behind the bytes. A FLUSH is carried out as a READ: a
// request over PCIe whose access waits for what the connection wrote before.
//
// Invariants:
//   RA1. The writes of a connection become visible in their order, and a
//        completion behind what it is of.
//   RA2. A FLUSH reads no earlier than all that the connection posted before it
//        is visible.
//   RA3. An atomic WRITE is issued when the FLUSHes before it are carried out;
//        posted operations pass both (taxonomy §2, "Operation Ordering").
// Thread safety: none.
// References: remote persistence taxonomy §2, Figure 1, §3.4 (the READ);
// staged_memory.h, whose stages these are.
#ifndef ALPHEUS_BENCH_REMOTELOG_RESPONDER_ADAPTER_H_
#define ALPHEUS_BENCH_REMOTELOG_RESPONDER_ADAPTER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "bench/remotelog/costs.h"
#include "bench/remotelog/event_queue.h"
#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::bench::remotelog {

// A step of a requester on its way.
struct Operation {
  size_t connection = 0;
  Step step;
  bool is_awaited = false;
  bool is_last_of_update = false;  // the last one with bytes
};

class ResponderAdapter {
 public:
  // Each is called at the time when it is so.
  struct Handlers {
    // Something goes back over the link, with these bytes.
    std::function<void(const Operation&, double bytes)> send_back;
    std::function<void(const Operation&)> bytes_visible;
    std::function<void(const Operation&)> message_visible;
  };

  ResponderAdapter(const Costs& costs, const Platform& platform,
                   size_t connections, EventQueue* queue, Handlers handlers);

  // It has come over the link, now.
  void Receive(const Operation& operation);

 private:
  struct Connection {
    double last_visible = 0;
    std::deque<Operation> non_posted;
    size_t flushes_under_way = 0;
  };

  void CarryOut(const Operation& operation);
  void CarryOutNonPosted(size_t connection);
  void Write(const Operation& operation);
  void Read(const Operation& operation);
  // Of a write that is issued now.
  double VisibleAt(Connection& connection);

  const Costs costs_;
  const double to_memory_;  // what memory takes longer than the cache
  EventQueue* const queue_;
  const Handlers handlers_;
  Lane receiving_;
  std::vector<Connection> connections_;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_RESPONDER_ADAPTER_H_
