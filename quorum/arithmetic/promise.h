// SPDX-License-Identifier: Apache-2.0
// promise: the rule by which a replica gives its word to one primary.
//
// Idea: safety of a fail-over comes from the replicas alone. A replica that
// promised an epoch takes no byte of an older one any more. A process with the
// promises of a quorum knows that no other can make a record durable.
//
//   request's epoch | from the promised process | verdict
//   below           | either                    | refused
//   equal           | yes                       | again: e.g. it reconnects
//   equal           | no                        | refused
//   above           | either                    | new
//
// "The promised process" is node and incarnation, both. The rule only judges.
// On new and on again the replica then acts, in this order: it persists the
// promise; it destroys every earlier session with its keys, of the same epoch
// too; it persists what is visible; it scans and reports (P-A4.2).
//
// Invariants:
//   PRO1. A replica's promise never goes back.
//   PRO2. A replica never promises one epoch to two processes.
// Thread safety: values and pure functions.
// References: protocol P-A4.2, P-H4, P-H5, P-H6; superline.h (SUP1).
#ifndef ALPHEUS_QUORUM_ARITHMETIC_PROMISE_H_
#define ALPHEUS_QUORUM_ARITHMETIC_PROMISE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/ballot.h"

namespace alpheus::quorum {

// An epoch and the process to which it is promised. Epoch 0: no promise.
struct Promise {
  Epoch epoch;
  PrimaryId primary;

  bool operator==(const Promise&) const = default;
};

enum class PromiseVerdict {
  kNew,      // above the current promise, which it replaces
  kAgain,    // the current promise, asked for once more
  kRefused,  // below it, or another process's
};

// Applies the table above. Requires: request.epoch > 0.
PromiseVerdict JudgePromise(const Promise& current, const Promise& request);

// Returns kNew or kAgain. Errors: InvalidArgument (the request names epoch 0 or
// incarnation 0); FailedPrecondition (refused; RefusingPromise of the status
// says by which promise).
absl::StatusOr<PromiseVerdict> AnswerPromise(const Promise& current,
                                             const Promise& request);

// Returns the promise by which AnswerPromise refused, if `status` is such a
// refusal. A loser must go above its epoch.
std::optional<Promise> RefusingPromise(const absl::Status& status);

// Returns "node 3, process 1f, opens epoch 131075", for a process that must
// step down for it.
std::string DescribeOpening(const Promise& promise);

// Returns true if a session of `session` may write to a replica whose promise
// is `current` (P-H5). Only the session whose promise stands may, and none
// before the first promise.
bool MayWrite(const Promise& current, const Promise& session);

// Read and update the promise in a superline. Requires: PRO1.
Promise PromiseOf(const Superline& superline);
void SetPromise(const Promise& promise, Superline& superline);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_ARITHMETIC_PROMISE_H_
