// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/election_checker.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

void ElectionChecker::Opens(int machine, uint32_t opening_quorum,
                            const std::vector<ToldWord>& told) {
  // Nodes that may have said yes.
  uint32_t others = 0;
  for (const ToldWord& each : told) {
    const bool says_no = each.word.has_value() && each.is_current &&
                         *each.word != recovery::PrimaryWord::kGone &&
                         *each.word != recovery::PrimaryWord::kSilent;
    if (!each.is_own) {
      others += says_no ? 0 : 1;
    } else if (says_no) {
      oracle_.Violate("ELE2", absl::StrCat("machine ", machine,
                                           " opens the log, whose primary its "
                                           "own node hears"));
      return;
    }
  }
  if (others + 1 >= opening_quorum) return;
  oracle_.Violate(
      "ELE2",
      absl::StrCat("machine ", machine, " opens the log, though at most ",
                   others, " other nodes don't hear a primary; needs ",
                   opening_quorum - 1));
}

void ElectionChecker::Leaves(int machine) {
  if (primary_ == machine) primary_.reset();
}

void ElectionChecker::Opened(int machine, int64_t now_ns) {
  const std::optional<int> before = std::exchange(primary_, machine);
  const int64_t since = now_ns - std::exchange(opened_at_, now_ns);
  if (!is_calm_ || !before || since < kSettledNanos) return;
  oracle_.Violate(
      "ELE2",
      absl::StrCat("machine ", machine, " opens the log that machine ", *before,
                   " has had for ", since, " ns, and nothing failed"));
}

}  // namespace alpheus::sim
