// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/method.h"

#include "absl/strings/str_cat.h"

namespace alpheus {
namespace {

constexpr uint16_t kEverywhere = (1U << kConfigurationCount) - 1;

constexpr Step kWriteImmediateFlushedByResponder[] = {
    Step::kRequesterWriteImmediate, Step::kResponderReceive,
    Step::kResponderFlush, Step::kResponderSendAck, Step::kRequesterReceiveAck};

// A stronger platform needs less than this: it has no use for the flush (MHP,
// WSP), or for the responder's program (DDIO off). But nothing of it is wrong
// there: the immediate is received only when the bytes are visible to the
// responder's processor, on every transport (X2 of fabric.h); what its flush
// and fence have covered is in the memory controller, which every domain
// contains; and the ack comes after that (§3.4 calls this universal). Neither
// the requester's completions, in which transports differ, nor the place of the
// receive buffers matter.
constexpr Method kMethods[] = {
    {"Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm", UpdateKind::kSingleton,
     UpdateOperation::kWriteImmediate, kWriteImmediateFlushedByResponder,
     kEverywhere},
};

}  // namespace

std::span<const Method> Methods() { return kMethods; }

const char* StepName(Step step) {
  switch (step) {
    case Step::kRequesterWriteImmediate:
      return "Rq WriteImm(a)";
    case Step::kResponderReceive:
      return "Rsp Receive(&a)";
    case Step::kResponderFlush:
      return "Rsp flush(&a)";
    case Step::kResponderSendAck:
      return "Rsp Send(ack)";
    case Step::kRequesterReceiveAck:
      return "Rq Receive(ack)";
  }
  return "?";
}

const char* UpdateKindName(UpdateKind kind) {
  return kind == UpdateKind::kSingleton ? "singleton" : "compound";
}

const char* UpdateOperationName(UpdateOperation operation) {
  switch (operation) {
    case UpdateOperation::kWrite:
      return "WRITE";
    case UpdateOperation::kWriteImmediate:
      return "WRITEIMM";
    case UpdateOperation::kSend:
      return "SEND";
  }
  return "?";
}

std::string PlanToString(const Plan& plan) {
  std::string text;
  for (const Step step : plan.steps) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", StepName(step));
  }
  return absl::StrCat(text, " (", plan.cell, ")");
}

}  // namespace alpheus
