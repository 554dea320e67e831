// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/calm_checker.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

void CalmChecker::InSync(uint32_t replicas, bool has_rival) {
  const uint32_t before = std::exchange(in_sync_, replicas);
  if (!is_calm_ || has_rival || replicas >= before) return;
  oracle_.Violate("P-A3.3",
                  absl::StrCat("of ", before, " replicas in sync ", replicas,
                               " are left, and nothing had happened to them"));
}

void CalmChecker::WithoutCredit(uint64_t messages) {
  if (!is_calm_ || messages == 0) return;
  oracle_.Violate("P-INV-R1", absl::StrCat(messages,
                                           " messages came without a credit, "
                                           "and nothing had happened"));
}

}  // namespace alpheus::sim
