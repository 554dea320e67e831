// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/crash.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/rocksdb/database.h"
#include "bench/rocksdb/fill.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

using replicated::OwnProcess;

// Both ends name the arguments in this order.
std::vector<std::string> ArgumentsOf(const CrashFill& fill) {
  return {kFillMode,
          fill.location.kind,
          fill.location.folder,
          absl::StrCat(fill.location.region_bytes),
          fill.database_folder,
          absl::StrCat(fill.puts),
          absl::StrCat(fill.value_bytes)};
}

absl::StatusOr<CrashFill> FromArguments(std::span<char* const> arguments) {
  CrashFill fill;
  if (arguments.size() != ArgumentsOf(fill).size() ||
      !absl::SimpleAtoi(arguments[3], &fill.location.region_bytes) ||
      !absl::SimpleAtoi(arguments[5], &fill.puts) ||
      !absl::SimpleAtoi(arguments[6], &fill.value_bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        kFillMode,
        " takes KIND FOLDER REGION_BYTES DATABASE_FOLDER PUTS VALUE_BYTES"));
  }
  fill.location.kind = arguments[1];
  fill.location.folder = arguments[2];
  fill.database_folder = arguments[4];
  return fill;
}

}  // namespace

absl::Status FillAndKill(const CrashFill& fill) {
  // Killed as soon as it has said that all is durable.
  return OwnProcess::Start(ArgumentsOf(fill)).status();
}

absl::Status FillUntilKilled(std::span<char* const> arguments) {
  ALPHEUS_ASSIGN_OR_RETURN(const CrashFill fill, FromArguments(arguments));
  ALPHEUS_ASSIGN_OR_RETURN(const OpenedPlace opened, OpenPlace(fill.location));
  ALPHEUS_ASSIGN_OR_RETURN(Database database,
                           Database::Open(opened.place, fill.database_folder));
  ALPHEUS_RETURN_IF_ERROR(
      RunFill(database,
              {.is_random = true,
               .value_bytes = fill.value_bytes,
               .puts = fill.puts,
               .duration_ns_max = std::numeric_limits<int64_t>::max() / 2})
          .status());
  ALPHEUS_RETURN_IF_ERROR(database.SyncWal());
  replicated::Say("all is durable");
  while (true) pause();
}

}  // namespace alpheus::bench::wal
