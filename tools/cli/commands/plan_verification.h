// SPDX-License-Identifier: Apache-2.0
// plan_verification: the tables on the model of remote memory
// (row_exploration.h): each row on its platform, each weakening of it, each row
// on each other platform, and the variants.
//
// Nothing here knows what should come out, but that rows suffice and weakenings
// don't.
// Thread safety: pure functions.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_PLAN_VERIFICATION_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_PLAN_VERIFICATION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "replication/persist/platform/method_table.h"
#include "tools/model/methods/row_exploration.h"
#include "tools/model/methods/weakening.h"

namespace alpheus::cli {

// How often the model said what; by RowVerdict.
struct VerdictCounts {
  std::array<uint64_t, 4> by_verdict = {};

  void Add(RowVerdict verdict) { ++by_verdict[static_cast<size_t>(verdict)]; }
  uint64_t of(RowVerdict verdict) const {
    return by_verdict[static_cast<size_t>(verdict)];
  }
  uint64_t all() const;
};

struct PlanVerification {
  VerdictCounts rows;
  // Of all rows, by Weakening::Kind.
  std::array<VerdictCounts, 3> weakenings;
  // "row: what it lacks", of those that are enough all the same.
  std::vector<std::string> insufficient_rows;
  std::vector<std::string> harmless_weakenings;

  // The rows as they are, where the world is another one.
  VerdictCounts on_iwarp;
  std::array<VerdictCounts, 3> on_iwarp_by_domain;
  VerdictCounts with_relaxed_ordering;
  std::vector<std::string> broken_by_relaxed_ordering;  // rows
  // What is planned for iWARP, TCP, and adapters without atomic WRITE.
  VerdictCounts planned_for_iwarp;
  VerdictCounts planned_for_tcp;
  VerdictCounts planned_without_atomic_write;

  // Each row on each other platform.
  std::vector<TableRow> table;
  std::vector<VerdictCounts> cross;  // of table's rows
  VerdictCounts cross_all;

  uint64_t explorations = 0;
  uint64_t states = 0;
  uint64_t images = 0;
};

PlanVerification VerifyTable();

std::string VerificationToText(const PlanVerification& found);

// Errors: Internal (a row or a plan is not enough, or a weakening is).
absl::Status VerdictOf(const PlanVerification& found);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_PLAN_VERIFICATION_H_
