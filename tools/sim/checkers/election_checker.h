// SPDX-License-Identifier: Apache-2.0
// election_checker: checks that nobody deposes a primary that nodes hear.
//
// Idea: a candidate that opens the log deposes its primary. Where nothing
// fails, no process stands still and no operator wants another primary, every
// node hears the primary; so a log that is open stays with its primary (ELE2 of
// election.h). Candidates that begin together may open at once, before the log
// was open for a while.
//
// Everywhere: an opening without an operator's word needs opening_quorum nodes
// that do not hear a primary. The last words of nodes to the candidate show
// when that can't be so. A word from before its node's last promise may be out
// of date, so it proves nothing.
//
// Checked:
//   ELE2  both (election.h)
// Thread safety: one thread.
// References: election.h; docs/verify/simulation.md.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_ELECTION_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_ELECTION_CHECKER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "recovery/protocol/messages.h"
#include "tools/sim/world/options.h"
#include "tools/sim/world/oracle.h"

namespace alpheus::sim {

// The last word of a member's node to a candidate.
struct ToldWord {
  bool is_own = false;  // the candidate's own node
  // Nothing: the candidate has no word of it.
  std::optional<recovery::PrimaryWord> word;
  bool is_current = true;  // the node has promised no later epoch since
};

class ElectionChecker {
 public:
  // After so long all candidates that began together have noticed.
  static constexpr int64_t kSettledNanos = 10'000'000;

  ElectionChecker(Oracle& oracle, const RunOptions& options)
      : oracle_(oracle), is_calm_(IsCalm(options)) {}

  // A candidate begins to open the log without an operator's word. `told` has
  // each member.
  void Opens(int machine, uint32_t opening_quorum,
             const std::vector<ToldWord>& told);
  // The machine's primary gives the log back to an operator, or is killed.
  void Leaves(int machine);
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
