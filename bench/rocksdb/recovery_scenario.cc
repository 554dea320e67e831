// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/rocksdb/crash.h"
#include "bench/rocksdb/database.h"
#include "bench/rocksdb/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

constexpr uint64_t kValueBytes = 100;

// A WAL that lost a put would be recovered sooner.
absl::Status CheckKeys(const Contestant& contestant, const Database& database,
                       uint64_t puts) {
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t found, database.CountKeys());
  if (found == puts) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(contestant.name(), ": of ", puts,
                                          " keys ", found, " were recovered"));
}

// Milliseconds.
absl::StatusOr<double> RunTurn(Contestant& contestant,
                               const std::string& folder, uint64_t puts) {
  ALPHEUS_RETURN_IF_ERROR(contestant.Begin().status());
  ALPHEUS_ASSIGN_OR_RETURN(Location location, contestant.Finish());
  ALPHEUS_RETURN_IF_ERROR(FillAndKill({.location = std::move(location),
                                       .database_folder = folder,
                                       .puts = puts,
                                       .value_bytes = kValueBytes}));
  const int64_t start = NowNanos();
  ALPHEUS_ASSIGN_OR_RETURN(const Place place, contestant.TakeBack());
  ALPHEUS_ASSIGN_OR_RETURN(Database database, Database::Open(place, folder));
  const int64_t end = NowNanos();
  ALPHEUS_RETURN_IF_ERROR(CheckKeys(contestant, database, puts));
  ALPHEUS_RETURN_IF_ERROR(database.Close());
  ALPHEUS_RETURN_IF_ERROR(Database::Destroy(place, folder));
  ALPHEUS_RETURN_IF_ERROR(contestant.End());
  return static_cast<double>(end - start) / 1e6;
}

}  // namespace

absl::Status MeasureRecovery(const Settings& settings, Contest& contest,
                             Report* report) {
  std::vector<Contestant*> with_wal;
  for (const auto& contestant : contest.contestants) {
    if (contestant->has_wal()) with_wal.push_back(contestant.get());
  }
  for (const uint64_t puts : settings.recovery_puts) {
    std::vector<std::vector<double>> samples(with_wal.size());
    ALPHEUS_RETURN_IF_ERROR(Interleave(
        settings.recovery_rounds, with_wal.size(),
        [&](size_t i) -> absl::Status {
          ALPHEUS_ASSIGN_OR_RETURN(
              const double milliseconds,
              RunTurn(*with_wal[i], contest.database_folder(), puts));
          samples[i].push_back(milliseconds);
          return absl::OkStatus();
        }));
    for (size_t i = 0; i < with_wal.size(); ++i) {
      report->measurements.push_back(
          {.scenario = "recovery",
           .candidate = with_wal[i]->name(),
           .metric = "reopen",
           .unit = "ms",
           .parameters = {{"puts", puts}, {"bytes", kValueBytes}},
           .samples = samples[i],
           .details = {}});
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::wal
