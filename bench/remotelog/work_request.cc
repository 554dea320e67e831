// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/work_request.h"

#include <cmath>
#include <cstddef>

#include "bench/remotelog/append_transport.h"

namespace alpheus::bench::remotelog {

using replication::StepAction;
using replication::UpdatePart;

namespace {

constexpr double kSegmentBytes = 16;
constexpr double kInlineHeaderBytes = 4;
constexpr double kBlockBytes = 64;

double BytesOf(UpdatePart part) {
  switch (part) {
    case UpdatePart::kA:
      return kRecordBytes;
    case UpdatePart::kB:
      return kTailBytes;
    case UpdatePart::kBoth:
      return kRecordBytes + kTailBytes;
    case UpdatePart::kNone:
      break;
  }
  return 0;
}

bool NamesRemoteMemory(StepAction action) {
  return action == StepAction::kRequesterWrite ||
         action == StepAction::kRequesterWriteImmediate || IsNonPosted(action);
}

}  // namespace

double PayloadBytes(const replication::Step& step) {
  switch (step.action) {
    case StepAction::kRequesterSendAddress:
    case StepAction::kResponderSendAck:
      return kNoticeBytes;
    case StepAction::kRequesterFlush:
      return 0;
    default:
      return BytesOf(step.part);
  }
}

bool IsInline(const replication::Step& step, const Costs& costs) {
  return PayloadBytes(step) <= costs.inline_bytes;
}

double PostCost(const replication::Step& step, const Costs& costs) {
  double bytes = kSegmentBytes;
  if (NamesRemoteMemory(step.action)) bytes += kSegmentBytes;
  const double payload = PayloadBytes(step);
  if (payload > 0 && IsInline(step, costs)) {
    bytes += std::ceil((kInlineHeaderBytes + payload) / kSegmentBytes) *
             kSegmentBytes;
  } else {
    bytes += kSegmentBytes;  // where the bytes are, or go
  }
  return costs.post + std::ceil(bytes / kBlockBytes) * costs.post_block;
}

double LinkTime(double payload_bytes, const Costs& costs) {
  return (costs.header_bytes + payload_bytes) * 8 / costs.gigabits;
}

std::vector<bool> AwaitedSteps(std::span<const replication::Step> steps) {
  std::vector<bool> awaited(steps.size());
  for (size_t wait = 0; wait < steps.size(); ++wait) {
    if (!IsWait(steps[wait].action)) continue;
    for (size_t i = wait; i-- > 0;) {
      if (steps[i].action == replication::AwaitedBy(steps[wait].action) &&
          steps[i].part == steps[wait].part) {
        awaited[i] = true;
        break;
      }
    }
  }
  return awaited;
}

}  // namespace alpheus::bench::remotelog
