// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/bare_fabric.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

absl::Status MeasureWithBackups(const Settings& settings, int backups,
                                Report* report) {
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = backups};
  ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                           MakeCandidates({{kFloorName, Floor()},
                                           {kBareFabricName, BareFabric()},
                                           {kAlpheusName, Alpheus()}},
                                          work, "latency", report));
  for (const uint64_t bytes : settings.sizes) {
    for (const Waiting waiting : {Waiting::kSpin, Waiting::kBlock}) {
      const Contest contest{
          .scenario = "latency",
          .parameters = {{"backups", static_cast<uint64_t>(backups)}},
          .bytes = bytes,
          .waiting = waiting,
          .warm_up_ops = settings.warm_up_ops,
          .ops = waiting == Waiting::kSpin ? settings.spin_ops
                                           : settings.block_ops};
      ALPHEUS_RETURN_IF_ERROR(
          RunContest(settings.rounds, candidates, contest, report));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureLatency(const Settings& settings, Report* report) {
  for (const int backups : settings.backups) {
    ALPHEUS_RETURN_IF_ERROR(MeasureWithBackups(settings, backups, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
