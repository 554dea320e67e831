// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/plan/account.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "replication/persist/execute/update_message.h"
#include "replication/wire/ack.h"

namespace alpheus {
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
bool CountPosted(const Step& step, const UpdateSizes& sizes, Account* account) {
  const uint64_t bytes = BytesOf(step, sizes);
  switch (step.action) {
    case StepAction::kRequesterWrite:
    case StepAction::kRequesterWriteAtomic:
      ++account->writes;
      account->bytes += bytes;
      return true;
    case StepAction::kRequesterWriteImmediate:
      ++account->immediates;
      account->bytes += bytes;
      return true;
    case StepAction::kRequesterSend:
      ++account->sends;
      account->bytes += sizes.message_header + bytes;
      return true;
    case StepAction::kRequesterSendAddress:
      ++account->sends;
      account->bytes += sizes.address;
      return true;
    case StepAction::kRequesterFlush:
      ++account->flushes;
      return true;
    default:
      return false;
  }
}

}  // namespace

Account AccountOf(std::span<const Step> steps, const UpdateSizes& sizes) {
  Account account;
  bool is_in_a_row = false;
  for (const Step& step : steps) {
    if (CountPosted(step, sizes, &account)) {
      account.doorbells += is_in_a_row ? 0 : 1;
      is_in_a_row = true;
    } else if (AwaitedBy(step.action) ||
               step.action == StepAction::kRequesterReceiveAck) {
      ++account.round_trips;
      is_in_a_row = false;
    } else if (step.action == StepAction::kResponderSendAck) {
      ++account.acks;
      account.ack_bytes += sizes.ack;
    } else if (step.action == StepAction::kResponderReceive ||
               step.action == StepAction::kResponderReceiveAddress) {
      ++account.wake_ups;
    }
  }
  return account;
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

std::string AccountToString(const Account& account) {
  return absl::StrCat(
      "writes ", account.writes, ", immediates ", account.immediates,
      ", sends ", account.sends, ", flushes ", account.flushes, ", doorbells ",
      account.doorbells, ", bytes ", account.bytes, "; acks ", account.acks,
      ", of ", account.ack_bytes, " bytes, wake-ups ", account.wake_ups,
      "; round trips ", account.round_trips);
}

}  // namespace alpheus
