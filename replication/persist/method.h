// SPDX-License-Identifier: Apache-2.0
// method: how an update that is written to another host becomes persistent
// there, as data.
//
// Idea: the taxonomy's Tables 2 and 3 have a cell for each platform, kind of
// update and operation: a sequence of steps, of which some are the requester's
// and some the responder's. method_table.h has all cells; a method here is one
// that is built in, and says on which other platforms its steps are enough,
// too. Executors (persist_requester.h, persist_responder.h) run steps, and the
// model (row_world.h) what they stand for; nobody else knows what they mean. A
// method more is an entry more, and a step that is new a handler in each
// executor that has to do something for it.
//
// Thread safety: constants and pure functions.
// References: remote persistence taxonomy, §3.2, §3.3, Tables 2 and 3;
// docs/design/replication.md, "Remote persistence".
#ifndef ALPHEUS_REPLICATION_PERSIST_METHOD_H_
#define ALPHEUS_REPLICATION_PERSIST_METHOD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "replication/persist/platform.h"

namespace alpheus {

enum class UpdateKind {
  kSingleton,  // a: one block, which says itself whether it is whole
  kCompound,   // a, then b, never b without a
};

// What the bytes of the update travel with.
enum class UpdateOperation { kWrite, kWriteImmediate, kSend };

// Whose act, and which. The responder's are the last ones. Of what is the
// step's part; a comp(...) waits for the completion of the last such operation
// before it.
enum class StepAction : uint8_t {
  kRequesterWrite,
  kRequesterWriteImmediate,  // the bytes, and where they are
  kRequesterWriteAtomic,     // at most 8 bytes; behind all that was posted
  kRequesterSend,            // the bytes, into a receive buffer
  kRequesterSendAddress,     // where bytes are that were written
  kRequesterFlush,
  kRequesterCompleteWrite,
  kRequesterCompleteWriteImmediate,
  kRequesterCompleteSend,
  kRequesterCompleteFlush,
  kRequesterReceiveAck,
  kResponderReceive,         // of the bytes
  kResponderReceiveAddress,  // also of an immediate
  kResponderCopy,            // from the receive buffer to where they belong
  kResponderFlush,           // the lines written back, and a fence
  kResponderCopyAndFlush,    // a with its fence before b
  kResponderSendAck,
};

constexpr bool IsOfResponder(StepAction action) {
  return action >= StepAction::kResponderReceive;
}

// What a wait for a completion waits for; nothing: it is none.
std::optional<StepAction> AwaitedBy(StepAction action);

enum class UpdatePart : uint8_t { kNone, kA, kB, kBoth };

struct Step {
  StepAction action = StepAction::kRequesterFlush;
  UpdatePart part = UpdatePart::kNone;

  constexpr bool operator==(const Step&) const = default;
};

struct Method {
  const char* cell;  // that it is
  UpdateKind kind;
  UpdateOperation operation;
  std::span<const Step> steps;
  // Bit ConfigurationIndex: Table 1's configurations on which the steps are
  // enough.
  uint16_t sufficient_on;
};

// All that are built in, the better ones first; of the whole tables
// (method_table.h), what executors can run.
std::span<const Method> Methods();

// The tables' words, in lower case: "rq:writeimm(a)", "rsp:copy+flush(a,b)",
// "rq:comp(write(b))".
std::string StepName(const Step& step);
// The same of all, with ; between them.
std::string StepsToString(std::span<const Step> steps);
const char* UpdateKindName(UpdateKind kind);
const char* UpdateOperationName(UpdateOperation operation);

// The steps of one update, which both ends run.
struct Plan {
  const char* cell;
  std::span<const Step> steps;
};
// "rq:writeimm(a);rsp:receive(&a);... (Table 2, ...)".
std::string PlanToString(const Plan& plan);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_METHOD_H_
