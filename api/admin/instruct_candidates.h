// SPDX-License-Identifier: Apache-2.0
// instruct_candidates: tells the candidates of a log an operator's word, and
// waits until it is obeyed: the core of `alpheus elect` and `alpheus drain`.
//
// Idea: all nodes are told (Instruct), and pass it on to the candidates that
// stand at them. Then the nodes are asked again and again who is primary
// (Hear).
//
// Invariants:
//   ICA1. Nobody is told anything unless a candidate of the node stands and,
//         for a drain, another one stands, too.
//   ICA2. Nobody is told anything by a list of members that is older than a
//         node's: candidates with it can't open the log.
// Thread safety: one thread.
// References: docs/design/election.md; election_desk.h.
#ifndef ALPHEUS_API_ADMIN_INSTRUCT_CANDIDATES_H_
#define ALPHEUS_API_ADMIN_INSTRUCT_CANDIDATES_H_

#include "absl/status/statusor.h"
#include "alpheus/candidate.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

// Returns the report of the primary once the instruction was obeyed. May block,
// up to options.timeout_ms. Errors: as Candidate::Elect and Drain.
absl::StatusOr<PrimaryReport> InstructCandidates(
    const ElectOptions& options, recovery::InstructionKind kind);

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_INSTRUCT_CANDIDATES_H_
