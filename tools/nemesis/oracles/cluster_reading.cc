// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/oracles/cluster_reading.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "tools/nemesis/oracles/log_output.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/processes/patience.h"

namespace alpheus::demo {
namespace {

// Writers' own replicas are not served: the proven records are shown, and a
// note that there may be more.
absl::StatusOr<ProgramResult> CatBesideWriter(
    const Cluster& cluster, const std::string& log,
    const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"--log", log};
  all.insert(all.end(), arguments.begin(), arguments.end());
  ALPHEUS_ASSIGN_OR_RETURN(ProgramResult result,
                           RunProgram(cluster.Alpheus("cat", all)));
  const int exit_status = result.end.exit_status;
  if (exit_status == 0 || exit_status == kUnavailable) return result;
  return absl::DataLossError(
      absl::StrCat("alpheus cat beside a writer: ", result.end.ToString(), ": ",
                   result.error));
}

}  // namespace

absl::StatusOr<std::vector<RecoveredRecord>> ReadLog(Cluster* cluster,
                                                     const std::string& log) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::string framed,
      cluster->MustSucceed("cat", {"--timeout-ms", kPatienceMillis, "--log",
                                   log, "--framing", "len32"}));
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::string lines,
      cluster->MustSucceed(
          "cat", {"--timeout-ms", kPatienceMillis, "--log", log, "--json"}));
  return ParseRecords(framed, lines);
}

// A node that did not answer in its time may be the one that proves the last
// records: less than there must be is an answer only if none was silent, or if
// it stays so.
absl::StatusOr<std::vector<RecoveredRecord>> ReadBesideWriter(
    Cluster* cluster, const std::string& log, uint64_t lsn_max) {
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  for (;;) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const ProgramResult framed,
        CatBesideWriter(*cluster, log, {"--framing", "len32"}));
    ALPHEUS_ASSIGN_OR_RETURN(const ProgramResult lines,
                             CatBesideWriter(*cluster, log, {"--json"}));
    ALPHEUS_ASSIGN_OR_RETURN(std::vector<RecoveredRecord> records,
                             ParseCommonRecords(framed.output, lines.output));
    const bool has_all = !records.empty() && records.back().lsn >= lsn_max;
    const bool is_certain =
        framed.end.exit_status == 0 && lines.end.exit_status == 0;
    if (has_all || is_certain || Clock::Real().NowNanos() >= end) {
      return records;
    }
  }
}

}  // namespace alpheus::demo
