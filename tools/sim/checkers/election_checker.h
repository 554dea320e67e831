// SPDX-License-Identifier: Apache-2.0
// election_checker: checks that in a run in which nothing fails a log changes
// hands for nobody's pleasure.
//
// Idea: a candidate that opens the log deposes its primary. Where nothing
// fails, no process stands still and no operator wants it, every node hears the
// primary; so a log that is open stays with its primary (ELE2 of election.h).
// Candidates that begin together may open at once: that is before the log was
// open for a while.
//
// Thread safety: one thread.
// References: election.h; docs/verify/simulation.md.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_ELECTION_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_ELECTION_CHECKER_H_

#include <cstdint>
#include <optional>

#include "tools/sim/world/options.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

class ElectionChecker {
 public:
  // By then all candidates that began together have noticed.
  static constexpr int64_t kSettledNanos = 10'000'000;

  ElectionChecker(Oracle& oracle, const RunOptions& options)
      : oracle_(oracle), is_calm_(IsCalm(options)) {}

  // An elected application has opened the log, at this time.
  void Opened(int machine, int64_t now_ns);

 private:
  Oracle& oracle_;
  const bool is_calm_;
  std::optional<int> primary_;  // the last one that opened
  int64_t opened_at_ = 0;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_ELECTION_CHECKER_H_
