// SPDX-License-Identifier: Apache-2.0
// force_policy: which completed records are forced (Arcadia §4.4), and whether
// a log can keep such a policy.
//
// Idea: a policy leaves records completed and not forced. Their number must
// stay below the cap on exposed records: otherwise reserving would force before
// the policy does (P-A3.1).
//
// Thread safety: values and pure functions.
// References: Arcadia §4.4; protocol P-A3.1, P-F6; group_commit.h.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_FORCE_POLICY_H_
#define ALPHEUS_LOG_CORE_DURABILITY_FORCE_POLICY_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "log/base/ids.h"

namespace alpheus {

struct ForcePolicy {
  // NOLINTNEXTLINE(google-explicit-constructor): a frequency is a policy.
  constexpr ForcePolicy(uint32_t f) : frequency(f) {}
  constexpr ForcePolicy(uint32_t f, uint32_t g) : frequency(f), group(g) {}
  // Forces each record.
  static constexpr ForcePolicy Each() { return {1}; }

  // Returns true if each record is forced before its append returns.
  bool forces_each() const { return frequency == 1 && group == 0; }
  // Returns true if the record `lsn` is forced, alone or in a group.
  bool Forces(Lsn lsn) const {
    return group != 0 || lsn.value % frequency == 0;
  }
  // Returns true if a log whose cap on exposed records is `exposed_max` can
  // keep it.
  bool IsPossible(uint64_t exposed_max) const {
    if (frequency == 0) return false;
    if (group != 0 && frequency != 1) return false;
    const uint32_t records = std::max(frequency, group);
    return records == 1 || 2 * uint64_t{records} <= exposed_max;
  }

  uint32_t frequency;  // forces LSNs divisible by it
  uint32_t group = 0;  // size of forced groups; 0: off
};

// Returns OK if the policy is possible. `log` is the log's name, for messages.
// Errors: InvalidArgument.
absl::Status CheckForcePolicy(const ForcePolicy& policy, uint64_t exposed_max,
                              const std::string& log);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_FORCE_POLICY_H_
