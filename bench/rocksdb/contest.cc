// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/rocksdb/cluster_wal.h"
#include "bench/rocksdb/folder_wal.h"
#include "bench/rocksdb/no_wal.h"
#include "bench/rocksdb/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {

std::vector<std::string> WalNames(const Settings& settings) {
  std::vector<std::string> names = {kNoWalName, kFloorName, kTmpfsName,
                                    kDiskName,  kFlexName,  kAlpheusName};
  for (const int backups : settings.backups) {
    names.push_back(AlpheusNameWith(backups));
  }
  names.push_back(kAppendName);
  return names;
}

bool IsWanted(const Settings& settings, const std::string& wal) {
  return settings.wals.empty() || std::ranges::count(settings.wals, wal) != 0;
}

absl::StatusOr<Contest> MakeContest(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(replicated::ScratchFolder scratch,
                           replicated::ScratchFolder::Make(settings.folder));
  Contest contest{.scratch = std::move(scratch), .contestants = {}};
  using Made = absl::StatusOr<std::unique_ptr<Contestant>>;
  const auto add = [&](const std::string& name,
                       absl::FunctionRef<Made()> make) -> absl::Status {
    Made made = IsWanted(settings, name) ? make()
                                         : absl::NotFoundError("not asked for");
    if (absl::IsNotFound(made.status())) {
      for (const Scenario& scenario : kScenarios) {
        report->skips.push_back({.scenario = std::string(scenario.name),
                                 .what = name,
                                 .why = std::string(made.status().message())});
      }
      return absl::OkStatus();
    }
    ALPHEUS_RETURN_IF_ERROR(made.status());
    contest.contestants.push_back(*std::move(made));
    return absl::OkStatus();
  };
  const std::string& folder = settings.folder;
  ALPHEUS_RETURN_IF_ERROR(add(kNoWalName, [] { return NoWal(); }));
  ALPHEUS_RETURN_IF_ERROR(add(kFloorName, [] { return DiscardedWal(); }));
  ALPHEUS_RETURN_IF_ERROR(
      add(kTmpfsName, [&] { return DefaultWal(kTmpfsName, folder); }));
  ALPHEUS_RETURN_IF_ERROR(
      add(kDiskName, [&] { return DiskWal(settings.disk_folder); }));
  ALPHEUS_RETURN_IF_ERROR(
      add(kFlexName, [&] { return FlexWal(folder, settings.region_bytes); }));
  ALPHEUS_RETURN_IF_ERROR(add(kAlpheusName, [&] {
    return LocalAlpheusWal(folder, settings.region_bytes);
  }));
  for (const int backups : settings.backups) {
    ALPHEUS_RETURN_IF_ERROR(add(AlpheusNameWith(backups), [&] {
      return ClusterWal({.folder = folder,
                         .ring_bytes = settings.region_bytes,
                         .backups = backups});
    }));
  }
  if (!IsWanted(settings, kAppendName)) {
    report->skips.push_back(
        {.scenario = "put", .what = kAppendName, .why = "not asked for"});
  }
  return contest;
}

}  // namespace alpheus::bench::wal
