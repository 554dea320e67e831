// SPDX-License-Identifier: Apache-2.0
// method: the ways in which an update that is written to another host becomes
// persistent there, as data.
//
// Idea: the taxonomy's Tables 2 and 3 have a cell for each platform, kind of
// update and operation: a sequence of steps, some of the requester and some of
// the responder. method_table.h has all cells. A *method* is a cell that this
// program can run for a log (built in); it also names the other platforms on
// which its steps are enough.
//
// Three places know what a step means: the executors of a log's plans
// (persist_requester.h, persist_responder.h), those of all rows
// (update_requester.h, update_responder.h), and the model (row_world.h). A new
// method is a new entry. A new step also needs a handler in each executor that
// must act on it.
//
// Thread safety: constants and pure functions.
// References: remote persistence taxonomy, §3.2, §3.3, Tables 2 and 3;
// docs/design/replication.md, "Remote persistence".
#ifndef ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_H_
#define ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "replication/persist/platform/platform.h"

namespace alpheus::replication {

enum class UpdateKind {
  kSingleton,  // a: one block, which shows whether it is whole
  kCompound,   // a, then b, never b without a
};

// The operation that carries the bytes of the update.
enum class UpdateOperation { kWrite, kWriteImmediate, kSend };

// Actions of a step; the responder's are the last ones. The step's part says on
// what it acts. A comp(...) waits for the completion of the last such operation
// before it.
enum class StepAction : uint8_t {
  kRequesterWrite,
  kRequesterWriteImmediate,  // the bytes, and their place
  kRequesterWriteAtomic,     // at most 8 bytes; after all earlier posts
  kRequesterSend,            // the bytes, into a receive buffer
  kRequesterSendAddress,     // the place of written bytes
  kRequesterFlush,
  kRequesterCompleteWrite,
  kRequesterCompleteWriteImmediate,
  kRequesterCompleteSend,
  kRequesterCompleteFlush,
  kRequesterReceiveAck,
  kResponderReceive,         // receives the bytes
  kResponderReceiveAddress,  // or an immediate
  kResponderCopy,            // from the receive buffer to their place
  kResponderFlush,           // writes the lines back, and fences
  kResponderCopyAndFlush,    // a with its fence before b
  kResponderSendAck,
};

constexpr bool IsOfResponder(StepAction action) {
  return action >= StepAction::kResponderReceive;
}

// Returns the operation whose completion is awaited; nothing if `action` is no
// such wait.
std::optional<StepAction> AwaitedBy(StepAction action);

enum class UpdatePart : uint8_t { kNone, kA, kB, kBoth };

struct Step {
  StepAction action = StepAction::kRequesterFlush;
  UpdatePart part = UpdatePart::kNone;

  constexpr bool operator==(const Step&) const = default;
};

struct Method {
  const char* cell;  // the cell that it implements
  UpdateKind kind;
  UpdateOperation operation;
  std::span<const Step> steps;
  // Configurations of Table 1 on which the steps are enough; bit
  // ConfigurationIndex.
  uint16_t sufficient_on;
};

// Returns all built-in methods, better ones first: the part of the tables
// (method_table.h) that executors can run.
std::span<const Method> Methods();

// Returns the tables' words, in lower case: "rq:writeimm(a)",
// "rsp:copy+flush(a,b)", "rq:comp(write(b))".
std::string StepName(const Step& step);
// Returns the words of all steps, with ; between them.
std::string StepsToString(std::span<const Step> steps);
const char* UpdateKindName(UpdateKind kind);
const char* UpdateOperationName(UpdateOperation operation);

// The steps of one update, which both ends run.
struct Plan {
  const char* cell;
  std::span<const Step> steps;
};
// Returns "rq:writeimm(a);rsp:receive(&a);... (Table 2, ...)".
std::string PlanToString(const Plan& plan);

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_H_
