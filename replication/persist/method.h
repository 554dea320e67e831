// SPDX-License-Identifier: Apache-2.0
// method: how an update that is written to another host becomes persistent
// there, as data.
//
// Idea: the taxonomy's Tables 2 and 3 have a cell for each platform, kind of
// update and operation: a sequence of steps, of which some are the requester's
// and some the responder's. Each method here is such a cell, and says on which
// other platforms its steps are enough, too. Executors (persist_requester.h,
// persist_responder.h) run steps; nobody else knows what they mean. A cell
// more is an entry more, and a step that is new a handler in each executor
// that has to do something for it.
//
// Thread safety: constants and pure functions.
// References: remote persistence taxonomy, §3.2, §3.3, Tables 2 and 3;
// docs/replication.md, "Remote persistence".
#ifndef ALPHEUS_REPLICATION_PERSIST_METHOD_H_
#define ALPHEUS_REPLICATION_PERSIST_METHOD_H_

#include <cstdint>
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

// The table's words are StepName's.
enum class Step : uint8_t {
  kRequesterWriteImmediate,  // the bytes, and where they are
  kResponderReceive,         // of the immediate
  kResponderFlush,           // the lines written back, and a fence
  kResponderSendAck,
  kRequesterReceiveAck,
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

// All that are built in, the better ones first.
std::span<const Method> Methods();

// As the tables print it: "Rq WriteImm(a)".
const char* StepName(Step step);
const char* UpdateKindName(UpdateKind kind);
const char* UpdateOperationName(UpdateOperation operation);

// The steps of one update, which both ends run.
struct Plan {
  const char* cell;
  std::span<const Step> steps;
};
// "Rq WriteImm(a), Rsp Receive(&a), ... (Table 2, ...)".
std::string PlanToString(const Plan& plan);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_METHOD_H_
