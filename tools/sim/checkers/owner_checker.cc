// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/owner_checker.h"

#include "absl/strings/str_cat.h"

namespace alpheus::sim {

void OwnerChecker::Activated(Epoch epoch, const LogPosition& start) {
  starts_.emplace(epoch.value, start.lsn);
}

void OwnerChecker::Shown(Epoch by, Lsn lsn, Epoch epoch) {
  ++world_.counters().owners_checked;
  // Only epochs before `by`: a later one may have opened meanwhile.
  auto owner = starts_.lower_bound(by.value);
  while (owner != starts_.begin()) {
    --owner;
    if (owner->second > lsn) continue;
    if (owner->first != epoch.value) {
      world_.oracle().Violate(
          "P-INV-13",
          absl::StrCat("LSN ", lsn.value, " is shown of epoch ", epoch.value,
                       "; since LSN ", owner->second.value, " epoch ",
                       owner->first, " owns it"));
    }
    return;
  }
  world_.oracle().Violate("P-INV-13",
                          absl::StrCat("LSN ", lsn.value, " is shown of epoch ",
                                       epoch.value, ", and no epoch owns it"));
}

void OwnerChecker::ChainKnown(const LogPosition& position) {
  const auto [known, is_new] =
      chains_.emplace(position.lsn.value, position.chain);
  if (is_new || known->second == position.chain) return;
  world_.oracle().Violate(
      "P-INV-8", absl::StrCat("before LSN ", position.lsn.value,
                              " there is another chain than there was"));
}

std::optional<uint64_t> OwnerChecker::ChainBefore(Lsn lsn) const {
  const auto known = chains_.find(lsn.value);
  if (known == chains_.end()) return std::nullopt;
  return known->second;
}

std::optional<Lsn> OwnerChecker::EndOf(Epoch log_epoch) const {
  if (starts_.empty() || starts_.rbegin()->first <= log_epoch.value) {
    return std::nullopt;
  }
  return starts_.rbegin()->second;
}

}  // namespace alpheus::sim
