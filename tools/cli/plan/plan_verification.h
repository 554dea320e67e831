// SPDX-License-Identifier: Apache-2.0
// plan_verification: runs the tables on the model of remote memory
// (row_exploration.h): each row on its platform, each weakening of it, each row
// on each other platform, and the variants.
//
// Expected here is only that rows suffice and weakenings don't.
// Thread safety: pure functions.
#ifndef ALPHEUS_TOOLS_CLI_PLAN_PLAN_VERIFICATION_H_
#define ALPHEUS_TOOLS_CLI_PLAN_PLAN_VERIFICATION_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "replication/persist/platform/method_table.h"
#include "tools/model/methods/row_exploration.h"
#include "tools/model/methods/weakening.h"

namespace alpheus::cli {

// Counts of the model's verdicts, by RowVerdict.
struct VerdictCounts {
  std::array<uint64_t, 4> by_verdict = {};

  void Add(model::RowVerdict verdict) {
    ++by_verdict[static_cast<size_t>(verdict)];
  }
  uint64_t of(model::RowVerdict verdict) const {
    return by_verdict[static_cast<size_t>(verdict)];
  }
  uint64_t all() const;
};

struct PlanVerification {
  VerdictCounts rows;
  // Counts over all rows, by Weakening::Kind.
  std::array<VerdictCounts, 3> weakenings;
  // Weakenings that suffice nevertheless, as "row: what it lacks".
  std::vector<std::string> insufficient_rows;
  std::vector<std::string> harmless_weakenings;

  // The unchanged rows in other worlds.
  VerdictCounts on_iwarp;
  std::array<VerdictCounts, 3> on_iwarp_by_domain;
  VerdictCounts with_relaxed_ordering;
  std::vector<std::string> broken_by_relaxed_ordering;  // rows
  // The plans for iWARP, TCP, and adapters without atomic WRITE.
  VerdictCounts planned_for_iwarp;
  VerdictCounts planned_for_tcp;
  VerdictCounts planned_without_atomic_write;

  // Each row on each other platform.
  std::vector<replication::TableRow> table;
  std::vector<VerdictCounts> cross;  // by row of `table`
  VerdictCounts cross_all;

  uint64_t explorations = 0;
  uint64_t states = 0;
  uint64_t images = 0;
};

PlanVerification VerifyTable();

std::string VerificationToText(const PlanVerification& found);

// Returns the verdict. Errors: Internal (a row or a plan does not suffice, or a
// weakening does).
absl::Status VerdictOf(const PlanVerification& found);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_PLAN_PLAN_VERIFICATION_H_
