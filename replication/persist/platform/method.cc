// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/method.h"

#include "absl/strings/str_cat.h"
#include "replication/persist/platform/method_steps.h"

namespace alpheus {
namespace {

constexpr uint16_t kEverywhere = (1U << kConfigurationCount) - 1;
// By Table 1's order: DMP with and without DDIO, MHP, WSP.
constexpr uint16_t kWithoutDdioInMemory = 0x00c;
constexpr uint16_t kWithCaches = 0x0f0;
constexpr uint16_t kWithAdapters = 0xf00;

// The last two are what the taxonomy calls universal (§3.4): the bytes are
// received only when they are visible to the responder's processor, on every
// transport (FB2 of fabric.h); what its flush and fence have covered is in the
// memory controller, which every domain contains; and the ack comes after that.
// Neither the requester's completions, in which transports differ, nor the
// place of the receive buffers matter.
constexpr Method kMethods[] = {
    {"Table 2, WSP, DDIO + DRAM-RQWRB, WriteImm", UpdateKind::kSingleton,
     UpdateOperation::kWriteImmediate, steps::kWriteImmediateCompleted,
     kWithAdapters},
    {"Table 2, MHP, DDIO + DRAM-RQWRB, WriteImm", UpdateKind::kSingleton,
     UpdateOperation::kWriteImmediate, steps::kWriteImmediateThenFlush,
     kWithAdapters | kWithCaches | kWithoutDdioInMemory},
    {"Table 2, DMP, DDIO + DRAM-RQWRB, WriteImm", UpdateKind::kSingleton,
     UpdateOperation::kWriteImmediate, steps::kWriteImmediateThenAck,
     kEverywhere},
    {"Table 3, DMP, DDIO + DRAM-RQWRB, Send", UpdateKind::kCompound,
     UpdateOperation::kSend, steps::kSendBothThenFlushedAck, kEverywhere},
};

// A step's part goes between the two.
struct Words {
  const char* before;
  const char* after;
};

Words WordsOf(StepAction action) {
  switch (action) {
    case StepAction::kRequesterWrite:
      return {"rq:write(", ")"};
    case StepAction::kRequesterWriteImmediate:
      return {"rq:writeimm(", ")"};
    case StepAction::kRequesterWriteAtomic:
      return {"rq:writeatomic(", ")"};
    case StepAction::kRequesterSend:
      return {"rq:send(", ")"};
    case StepAction::kRequesterSendAddress:
      return {"rq:send(&", ")"};
    case StepAction::kRequesterFlush:
      return {"rq:flush", ""};
    case StepAction::kRequesterCompleteWrite:
      return {"rq:comp(write(", "))"};
    case StepAction::kRequesterCompleteWriteImmediate:
      return {"rq:comp(writeimm(", "))"};
    case StepAction::kRequesterCompleteSend:
      return {"rq:comp(send(", "))"};
    case StepAction::kRequesterCompleteFlush:
      return {"rq:comp(flush)", ""};
    case StepAction::kRequesterReceiveAck:
      return {"rq:receive(ack)", ""};
    case StepAction::kResponderReceive:
      return {"rsp:receive(", ")"};
    case StepAction::kResponderReceiveAddress:
      return {"rsp:receive(&", ")"};
    case StepAction::kResponderCopy:
      return {"rsp:copy(", ")"};
    case StepAction::kResponderFlush:
      return {"rsp:flush(&", ")"};
    case StepAction::kResponderCopyAndFlush:
      return {"rsp:copy+flush(", ")"};
    case StepAction::kResponderSendAck:
      return {"rsp:send(ack)", ""};
  }
  return {"?", ""};
}

const char* NameOf(UpdatePart part) {
  switch (part) {
    case UpdatePart::kNone:
      return "";
    case UpdatePart::kA:
      return "a";
    case UpdatePart::kB:
      return "b";
    case UpdatePart::kBoth:
      return "a,b";
  }
  return "?";
}

}  // namespace

std::optional<StepAction> AwaitedBy(StepAction action) {
  switch (action) {
    case StepAction::kRequesterCompleteWrite:
      return StepAction::kRequesterWrite;
    case StepAction::kRequesterCompleteWriteImmediate:
      return StepAction::kRequesterWriteImmediate;
    case StepAction::kRequesterCompleteSend:
      return StepAction::kRequesterSend;
    case StepAction::kRequesterCompleteFlush:
      return StepAction::kRequesterFlush;
    default:
      return std::nullopt;
  }
}

std::span<const Method> Methods() { return kMethods; }

std::string StepName(const Step& step) {
  const Words words = WordsOf(step.action);
  return absl::StrCat(words.before, NameOf(step.part), words.after);
}

std::string StepsToString(std::span<const Step> steps) {
  std::string text;
  for (const Step& step : steps) {
    absl::StrAppend(&text, text.empty() ? "" : ";", StepName(step));
  }
  return text;
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
  return absl::StrCat(StepsToString(plan.steps), " (", plan.cell, ")");
}

}  // namespace alpheus
