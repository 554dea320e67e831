// SPDX-License-Identifier: Apache-2.0
// responder_adapter: the times at which arrivals at a server are received,
// visible, and answered.
//
// Idea: an operation is received, then a write crosses PCIe to the root complex
// and goes from there into the cache, or to the memory controller. A completion
// is another write, after the bytes. A FLUSH is carried out as a READ: a
// request over PCIe whose access waits for what the connection wrote before.
//
// Invariants:
//   RA1. The writes of a connection become visible in order, and a completion
//        after its bytes.
//   RA2. A FLUSH reads only when everything that the connection posted before
//        it is visible.
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

// Step of a requester in flight.
struct Operation {
  size_t connection = 0;
  replication::Step step;
  bool is_awaited = false;
  bool is_last_of_update = false;  // the last one with bytes
};

class ResponderAdapter {
 public:
  // Each is called at the time of its event.
  struct Handlers {
    // Sends these bytes back over the link.
    std::function<void(const Operation&, double bytes)> send_back;
    std::function<void(const Operation&)> bytes_visible;
    std::function<void(const Operation&)> message_visible;
  };

  ResponderAdapter(const Costs& costs, const replication::Platform& platform,
                   size_t connections, EventQueue* queue, Handlers handlers);

  // Receives an operation that has just come over the link.
  void Receive(const Operation& operation);

 private:
  struct Connection {
    double last_visible = 0;
    std::deque<Operation> non_posted;
    size_t flushes_in_flight = 0;
  };

  void CarryOut(const Operation& operation);
  void CarryOutNonPosted(size_t connection);
  void Write(const Operation& operation);
  void Read(const Operation& operation);
  // Returns the time at which a write issued now is visible.
  double VisibleAt(Connection& connection);

  const Costs costs_;
  const double to_memory_;  // extra time of memory over the cache
  EventQueue* const queue_;
  const Handlers handlers_;
  Lane receiving_;
  std::vector<Connection> connections_;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_RESPONDER_ADAPTER_H_
