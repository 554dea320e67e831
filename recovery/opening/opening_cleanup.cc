// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/opening_cleanup.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/format/record.h"

namespace alpheus::recovery {

absl::Status CleanThrough(Lsn through, std::span<const StateReport> reports,
                          Decision& decision) {
  if (through >= decision.end.lsn) {
    return absl::OutOfRangeError(absl::StrCat(
        "LSN ", through.value, " was never assigned: the last one is ",
        decision.end.lsn.value - 1, ". Nothing was changed but promises"));
  }
  for (KeptRun& run : decision.kept) {
    if (run.first > through) break;
    if (run.unread) {
      return absl::FailedPreconditionError(absl::StrCat(
          "LSN ", run.first.value, " to ", run.end.value - 1,
          ": a replica was asked to name each record, and named only its last "
          "ones, so that none can be cleaned here. Run programs of one version "
          "on all nodes"));
    }
    for (; run.first < run.end && run.first <= through;
         run.first = run.first + 1) {
      const ReportedRecord& record = RecordAt(reports, run, run.first);
      decision.head = {
          run.first + 1, record.end(),
          ExtendChain(decision.head.chain, record.header_checksum)};
    }
  }
  std::erase_if(decision.kept,
                [](const KeptRun& run) { return run.first == run.end; });
  return absl::OkStatus();
}

}  // namespace alpheus::recovery
