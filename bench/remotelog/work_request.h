// SPDX-License-Identifier: Apache-2.0
// work_request: the cost of a requester's step for adapters and processors.
//
// Idea: sizes decide costs: a work request is stored into the adapter by blocks
// of 64 bytes (BlueFlame), small bytes within it; a packet occupies the link by
// its bytes. The layout is mlx5's: a control segment, an address segment if it
// names remote memory, then bytes or a pointer to them.
//
// Thread safety: pure functions.
// References: rdma-core, providers/mlx5 (qp.c); docs/results/remotelog.md.
#ifndef ALPHEUS_BENCH_REMOTELOG_WORK_REQUEST_H_
#define ALPHEUS_BENCH_REMOTELOG_WORK_REQUEST_H_

#include <span>
#include <vector>

#include "bench/remotelog/costs.h"
#include "replication/persist/platform/method.h"

namespace alpheus::bench::remotelog {

// Size of a message with an address, and of an ack.
inline constexpr double kNoticeBytes = 16;

constexpr bool IsWait(replication::StepAction action) {
  return action == replication::StepAction::kRequesterCompleteWrite ||
         action == replication::StepAction::kRequesterCompleteWriteImmediate ||
         action == replication::StepAction::kRequesterCompleteSend ||
         action == replication::StepAction::kRequesterCompleteFlush ||
         action == replication::StepAction::kRequesterReceiveAck;
}
// Returns whether the step takes a receive buffer of the responder, whose
// program then sees it.
constexpr bool IsMessage(replication::StepAction action) {
  return action == replication::StepAction::kRequesterWriteImmediate ||
         action == replication::StepAction::kRequesterSend ||
         action == replication::StepAction::kRequesterSendAddress;
}
// Returns whether the step runs after everything posted before it, and is
// answered then.
constexpr bool IsNonPosted(replication::StepAction action) {
  return action == replication::StepAction::kRequesterFlush ||
         action == replication::StepAction::kRequesterWriteAtomic;
}

// Returns the bytes that a step of the requester, or an ack, carries.
double PayloadBytes(const replication::Step& step);
bool IsInline(const replication::Step& step, const Costs& costs);
// Returns the time of the processor that posts it.
double PostCost(const replication::Step& step, const Costs& costs);
// Returns the time of the link for a packet with this payload.
double LinkTime(double payload_bytes, const Costs& costs);

// Returns, for each step, whether its completion is waited for (and requested):
// the last one of its kind and part before a wait.
std::vector<bool> AwaitedSteps(std::span<const replication::Step> steps);

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_WORK_REQUEST_H_
