// SPDX-License-Identifier: Apache-2.0
// work_request: what a step of a requester is for adapters and processors.
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

// Of a message that tells an address, and of an ack.
inline constexpr double kNoticeBytes = 16;

constexpr bool IsWait(StepAction action) {
  return action == StepAction::kRequesterCompleteWrite ||
         action == StepAction::kRequesterCompleteWriteImmediate ||
         action == StepAction::kRequesterCompleteSend ||
         action == StepAction::kRequesterCompleteFlush ||
         action == StepAction::kRequesterReceiveAck;
}
// It takes a receive buffer of the responder, and its program hears of it.
constexpr bool IsMessage(StepAction action) {
  return action == StepAction::kRequesterWriteImmediate ||
         action == StepAction::kRequesterSend ||
         action == StepAction::kRequesterSendAddress;
}
// Carried out behind all that was posted before; answered when it was.
constexpr bool IsNonPosted(StepAction action) {
  return action == StepAction::kRequesterFlush ||
         action == StepAction::kRequesterWriteAtomic;
}

// Bytes that a step of the requester, or an ack, carries.
double PayloadBytes(const Step& step);
bool IsInline(const Step& step, const Costs& costs);
// Of the processor that posts it.
double PostCost(const Step& step, const Costs& costs);
// Of the link, for a packet with this payload.
double LinkTime(double payload_bytes, const Costs& costs);

// Of each step, whether its completion is waited for (and asked for): the last
// one of its kind and part before a wait.
std::vector<bool> AwaitedSteps(std::span<const Step> steps);

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_WORK_REQUEST_H_
