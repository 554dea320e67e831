// SPDX-License-Identifier: Apache-2.0
// simulated_transport: appends in simulated time, by a cost model.
//
// Idea: it models clients, each with a processor and an adapter, a link each
// way, and the server's adapter, memory and thread, as events in event_queue.h.
// The time of an append is the result; leaving out a step, or adding one,
// changes it.
//
// Fault model: none; nothing is lost, and receive buffers never run out.
// Thread safety: none.
// References: remote persistence taxonomy Figure 1, §4;
// docs/results/remotelog.md.
#ifndef ALPHEUS_BENCH_REMOTELOG_SIMULATED_TRANSPORT_H_
#define ALPHEUS_BENCH_REMOTELOG_SIMULATED_TRANSPORT_H_

#include "absl/status/statusor.h"
#include "bench/remotelog/append_transport.h"
#include "bench/remotelog/costs.h"

namespace alpheus::bench::remotelog {

class SimulatedTransport final : public AppendTransport {
 public:
  explicit SimulatedTransport(const Costs& costs) : costs_(costs) {}

  // Runs the appends. Errors: FailedPrecondition (the steps never end).
  absl::StatusOr<AppendTimes> Append(const AppendRun& run) override;

 private:
  const Costs costs_;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_SIMULATED_TRANSPORT_H_
