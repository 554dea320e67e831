// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/plan/update_cost.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "replication/persist/execute/update_message.h"
#include "replication/wire/ack.h"

namespace alpheus::replication {
namespace {

uint64_t BytesOf(const Step& step, const UpdateSizes& sizes) {
  switch (step.part) {
    case UpdatePart::kNone:
      return 0;
    case UpdatePart::kA:
      return sizes.a;
    case UpdatePart::kB:
      return sizes.b;
    case UpdatePart::kBoth:
      return sizes.a + sizes.b;
  }
  return 0;
}

// Counts one operation of the requester. Returns false if the step posts none.
bool CountPosted(const Step& step, const UpdateSizes& sizes, UpdateCost* cost) {
  const uint64_t bytes = BytesOf(step, sizes);
  switch (step.action) {
    case StepAction::kRequesterWrite:
    case StepAction::kRequesterWriteAtomic:
      ++cost->writes;
      cost->bytes += bytes;
      return true;
    case StepAction::kRequesterWriteImmediate:
      ++cost->immediates;
      cost->bytes += bytes;
      return true;
    case StepAction::kRequesterSend:
      ++cost->sends;
      cost->bytes += sizes.message_header + bytes;
      return true;
    case StepAction::kRequesterSendAddress:
      ++cost->sends;
      cost->bytes += sizes.address;
      return true;
    case StepAction::kRequesterFlush:
      ++cost->flushes;
      return true;
    default:
      return false;
  }
}

}  // namespace

UpdateCost UpdateCostOf(std::span<const Step> steps, const UpdateSizes& sizes) {
  UpdateCost cost;
  bool is_in_a_row = false;
  for (const Step& step : steps) {
    if (CountPosted(step, sizes, &cost)) {
      cost.doorbells += is_in_a_row ? 0 : 1;
      is_in_a_row = true;
    } else if (AwaitedBy(step.action) ||
               step.action == StepAction::kRequesterReceiveAck) {
      ++cost.round_trips;
      is_in_a_row = false;
    } else if (step.action == StepAction::kResponderSendAck) {
      ++cost.acks;
      cost.ack_bytes += sizes.ack;
    } else if (step.action == StepAction::kResponderReceive ||
               step.action == StepAction::kResponderReceiveAddress) {
      ++cost.wake_ups;
    }
  }
  return cost;
}

UpdateSizes SizesOfUpdate(uint64_t a, uint64_t b) {
  return {.a = a,
          .b = b,
          .message_header = kUpdateMessageHeaderBytes,
          .address = kUpdateMessageHeaderBytes,
          .ack = kUpdateReportBytes};
}

UpdateSizes SizesOfRecord(uint64_t record_bytes) {
  return {.a = record_bytes, .ack = kAckBytes};
}

std::string UpdateCostToString(const UpdateCost& cost) {
  return absl::StrCat(
      "writes ", cost.writes, ", immediates ", cost.immediates, ", sends ",
      cost.sends, ", flushes ", cost.flushes, ", doorbells ", cost.doorbells,
      ", bytes ", cost.bytes, "; acks ", cost.acks, ", of ", cost.ack_bytes,
      " bytes, wake-ups ", cost.wake_ups, "; round trips ", cost.round_trips);
}

}  // namespace alpheus::replication
