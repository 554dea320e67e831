// SPDX-License-Identifier: Apache-2.0
#include "log/core/durability/force_policy.h"

#include "absl/strings/str_cat.h"

namespace alpheus {

absl::Status CheckForcePolicy(const ForcePolicy& policy, uint64_t exposed_max,
                              const std::string& log) {
  if (policy.IsPossible(exposed_max)) [[likely]]
    return absl::OkStatus();
  if (policy.frequency == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(log, ": force frequency 0; 1 forces every record"));
  }
  if (policy.group != 0 && policy.frequency != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        log, ": force frequency ", policy.frequency, " and groups of ",
        policy.group, " are two policies; choose one"));
  }
  const uint32_t records = std::max(policy.frequency, policy.group);
  return absl::InvalidArgumentError(
      absl::StrCat(log, ": forcing every ", records, " records needs a cap of ",
                   2 * uint64_t{records}, " exposed ones, and it is ",
                   exposed_max, ". Raise exposure_records_max"));
}

}  // namespace alpheus
