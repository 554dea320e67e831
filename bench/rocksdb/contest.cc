// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "bench/rocksdb/cluster_wal.h"
#include "bench/rocksdb/folder_wal.h"
#include "bench/rocksdb/no_wal.h"
#include "bench/rocksdb/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {

absl::StatusOr<Contest> MakeContest(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(replicated::ScratchFolder scratch,
                           replicated::ScratchFolder::Make(settings.folder));
  Contest contest{.scratch = std::move(scratch), .contestants = {}};
  auto& all = contest.contestants;
  const auto add =
      [&](const char* name,
          absl::StatusOr<std::unique_ptr<Contestant>> made) -> absl::Status {
    if (absl::IsNotFound(made.status())) {
      for (const Scenario& scenario : kScenarios) {
        report->skips.push_back({.scenario = std::string(scenario.name),
                                 .what = name,
                                 .why = std::string(made.status().message())});
      }
      return absl::OkStatus();
    }
    ALPHEUS_RETURN_IF_ERROR(made.status());
    all.push_back(*std::move(made));
    return absl::OkStatus();
  };
  all.push_back(NoWal());
  all.push_back(DiscardedWal());
  ALPHEUS_RETURN_IF_ERROR(
      add(kTmpfsName, DefaultWal(kTmpfsName, settings.folder)));
  ALPHEUS_RETURN_IF_ERROR(add(kDiskName, DiskWal(settings.disk_folder)));
  ALPHEUS_RETURN_IF_ERROR(
      add(kFlexName, FlexWal(settings.folder, settings.region_bytes)));
  ALPHEUS_RETURN_IF_ERROR(add(
      kAlpheusName, LocalAlpheusWal(settings.folder, settings.region_bytes)));
  for (const int backups : settings.backups) {
    all.push_back(ClusterWal({.folder = settings.folder,
                              .ring_bytes = settings.region_bytes,
                              .backups = backups}));
  }
  return contest;
}

}  // namespace alpheus::bench::wal
