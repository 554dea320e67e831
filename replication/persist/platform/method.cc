// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/method.h"

#include "absl/strings/str_cat.h"
#include "replication/persist/platform/method_steps.h"

namespace alpheus::replication {
namespace {

constexpr uint16_t kEverywhere = (1U << kConfigurationCount) - 1;
// Bits in Table 1's order: DMP with and without DDIO, MHP, WSP.
constexpr uint16_t kWithoutDdioInMemory = 0x00c;
constexpr uint16_t kWithCaches = 0x0f0;
constexpr uint16_t kWithAdapters = 0xf00;

// The taxonomy calls the last two universal (§3.4). On every transport the
// bytes are received only when the responder's processor sees them (FB2 of
// fabric.h). Its flush and fence bring them into the memory controller, which
// every domain contains. The ack comes after that. The requester's completions,
// in which transports differ, and the place of the receive buffers do not
// matter.
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

// The text of a step, before and after its part.
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

}  // namespace alpheus::replication
