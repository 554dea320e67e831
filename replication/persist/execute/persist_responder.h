// SPDX-License-Identifier: Apache-2.0
// persist_responder: runs the responder's steps of a plan.
//
// Idea: the server of a connection learns from immediates which bytes were
// written. From time to time it runs the plan's steps for all of them at once,
// so that one fence serves many updates.
//
// Invariants:
//   PS1. The ack is given only after the steps that the plan has before it, for
//        all announced bytes (P-INV-15, P-INV-L7).
// Persistence: any part of the bytes that were written and not acknowledged may
// be persistent, in any order.
// Thread safety: one thread.
// May block: Respond, for the medium's fence (on a plain file: for the disk)
// and for page faults of the written bytes.
// References: method.h; remote persistence taxonomy §3.2; protocol P-A3.4.
#ifndef ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_RESPONDER_H_
#define ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_RESPONDER_H_

#include <algorithm>
#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/pmem/persistence.h"
#include "replication/persist/platform/method.h"

namespace alpheus::replication {

// Bytes that a peer wrote; empty: none.
using WrittenBytes = std::span<const std::byte>;

template <Persistence P>
class PersistResponder {
 public:
  // `pmem` must outlive the object.
  PersistResponder(P& pmem, const Plan& plan) : pmem_(pmem), plan_(plan) {
    ALPHEUS_CHECK(std::ranges::all_of(plan.steps, IsBuiltIn),
                  "a step that is not run would be silently left out");
  }

  // Runs the steps for what was written since the last call. `written` is one
  // piece or, around the end of a ring, two. `acknowledge` is called where
  // the plan sends the ack, and returns an absl::Status. Errors: the medium's
  // (what is persistent is unknown); acknowledge's.
  template <class Acknowledge>
  absl::Status Respond(std::span<const WrittenBytes> written,
                       const Acknowledge& acknowledge) {
    for (const Step& step : plan_.steps) {
      switch (step.action) {
        case StepAction::kResponderFlush:
          ALPHEUS_RETURN_IF_ERROR(Flush(written));
          break;
        case StepAction::kResponderSendAck:
          ALPHEUS_RETURN_IF_ERROR(acknowledge());
          break;
        default:  // kResponderReceiveAddress is why this is called
          break;
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool IsBuiltIn(const Step& step) {
    return !IsOfResponder(step.action) ||
           step.action == StepAction::kResponderReceiveAddress ||
           step.action == StepAction::kResponderFlush ||
           step.action == StepAction::kResponderSendAck;
  }
  // Flushes all with one fence; without bytes, with none.
  absl::Status Flush(std::span<const WrittenBytes> written) {
    if (std::ranges::all_of(written, &WrittenBytes::empty)) {
      return absl::OkStatus();
    }
    for (const WrittenBytes& bytes : written) {
      if (bytes.empty()) continue;
      pmem_.Flush(bytes.data(), bytes.size());
    }
    return pmem_.Fence() ? absl::OkStatus() : pmem_.Error();
  }

  P& pmem_;
  const Plan plan_;
};

}  // namespace alpheus::replication

#endif  // ALPHEUS_REPLICATION_PERSIST_EXECUTE_PERSIST_RESPONDER_H_
