// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/bare_fabric.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/rdma_hosts.h"
#include "bench/replicated/candidates/verbs_floor.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

// A guest's adapter is a program, and so is its processor.
constexpr uint64_t kOpsMax = 3'000;

}  // namespace

absl::Status MeasureVerbs(const Settings& settings, Report* report) {
  const std::vector<std::string> hosts = RdmaHosts();
  if (hosts.size() < 2) {
    report->skips.push_back(
        {.scenario = "verbs",
         .what = "all of it",
         .why = "ALPHEUS_VERBS_ADDRESSES names no two addresses of adapters "
                "with RDMA; `tools/dev vm-test append` runs it in a guest"});
    return absl::OkStatus();
  }
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = 1,
                  .hosts = hosts};
  const Contest contest{
      .scenario = "verbs",
      .parameters = {{"backups", 1}},
      .bytes = 64,
      .waiting = Waiting::kSpin,
      .warm_up_ops = std::min(settings.warm_up_ops, kOpsMax / 10),
      .ops = std::min(settings.spin_ops, kOpsMax)};
  return MeasureOne(settings.rounds,
                    {{kVerbsFloorName, VerbsFloor()},
                     {kBareFabricName, BareFabric()},
                     {kAlpheusName, Alpheus()}},
                    work, contest, report);
}

}  // namespace alpheus::bench::replicated
