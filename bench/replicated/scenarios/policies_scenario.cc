// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <vector>

#include "bench/harness/force_policy.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr int kPolicyBackups = 2;
constexpr uint64_t kPolicyPayloadBytes = 64;
// The paper's, of comparable exposure at its 16 threads.
constexpr std::array<ForcePolicy, 5> kPolicies = {{{.frequency = 1},
                                                   {.frequency = 8},
                                                   {.frequency = 16},
                                                   {.group = 128},
                                                   {.group = 256}}};

}  // namespace

absl::Status MeasurePolicies(const Settings& settings, Report* report) {
  std::vector<Contestant> contestants;
  for (const ForcePolicy& policy : kPolicies) {
    const std::string name = CandidateName(policy);
    contestants.push_back({name, Alpheus({.name = name, .policy = policy})});
  }
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = kPolicyBackups};
  const Contest contest{.scenario = "policies",
                        .parameters = {{"backups", kPolicyBackups}},
                        .bytes = kPolicyPayloadBytes,
                        .waiting = Waiting::kSpin,
                        .warm_up_ops = settings.warm_up_ops,
                        .ops = settings.spin_ops};
  return MeasureOne(settings.rounds, contestants, work, contest, report);
}

}  // namespace alpheus::bench::replicated
