// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/election_checker.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

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
