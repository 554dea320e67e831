// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <set>

#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/floor.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {

absl::Status MeasureBackups(const Settings& settings, Report* report) {
  for (const int backups : settings.many_backups) {
    const int copies = backups + 1;
    for (const int quorum : std::set<int>{copies / 2 + 1, copies}) {
      const Work work{.folder = settings.folder,
                      .ring_bytes = settings.ring_bytes,
                      .backups = backups,
                      .write_quorum = quorum};
      for (const uint64_t bytes : settings.many_sizes) {
        const Contest contest{
            .scenario = "backups",
            .parameters = {{"backups", static_cast<uint64_t>(backups)},
                           {"quorum", static_cast<uint64_t>(quorum)}},
            .bytes = bytes,
            .waiting = Waiting::kSpin,
            .warm_up_ops = settings.warm_up_ops / 4,
            .ops = settings.block_ops};
        ALPHEUS_RETURN_IF_ERROR(MeasureOne(
            settings.rounds, {{kFloorName, Floor()}, {kAlpheusName, Alpheus()}},
            work, contest, report));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
