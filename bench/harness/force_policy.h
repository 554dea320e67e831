// SPDX-License-Identifier: Apache-2.0
// force_policy: when records become durable, as the scenarios name it.
#ifndef ALPHEUS_BENCH_HARNESS_FORCE_POLICY_H_
#define ALPHEUS_BENCH_HARNESS_FORCE_POLICY_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "alpheus/options.h"

namespace alpheus::bench {

struct ForcePolicy {
  uint32_t frequency = 1;  // force LSNs divisible by it; 1: every record
  uint32_t group = 0;      // not 0: group commit of so many, no frequency
};

inline ForceOptions OptionsOf(const ForcePolicy& policy) {
  ForceOptions options;
  options.frequency = policy.frequency;
  options.group = policy.group;
  return options;
}

// "alpheus", "alpheus-freq8", "alpheus-group128".
inline std::string CandidateName(const ForcePolicy& policy) {
  if (policy.group != 0) return absl::StrCat("alpheus-group", policy.group);
  if (policy.frequency == 1) return "alpheus";
  return absl::StrCat("alpheus-freq", policy.frequency);
}

// What a crash may take, at most: completed records that are not durable.
inline uint64_t ExposureBound(const ForcePolicy& policy, int threads) {
  const auto count = static_cast<uint64_t>(threads);
  if (policy.group != 0) return policy.group + count - 1;
  return policy.frequency * count;
}

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_FORCE_POLICY_H_
