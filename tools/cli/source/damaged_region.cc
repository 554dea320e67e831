// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/source/damaged_region.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::cli {
namespace {

void CountLoss(const std::string& path, Lsn first, Lsn after,
               SalvageTally* tally) {
  ++tally->gaps;
  if (after == Lsn(0)) {
    tally->lost_open_end = true;
    Report(absl::StrCat(path, ": lost: LSN ", first.value,
                        " and all records after it, if there were any"));
    return;
  }
  tally->lost_lsns += after - first;
  Report(
      absl::StrCat(path, ": lost: LSN ", first.value, " to ", after.value - 1));
}

}  // namespace

void Report(const std::string& message) {
  std::fprintf(stderr, "alpheus: %s\n", message.c_str());
}

absl::StatusOr<std::unique_ptr<LogReader>> OpenDamaged(const std::string& path,
                                                       SalvageTally* tally) {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogReader> reader,
                           LogReader::OpenForSalvage(path));
  if (reader->info().has_writer) {
    const uint64_t node = reader->info().node.value;
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": a writer has this region open; ",
                     node == 0 ? "close it"
                               : absl::StrCat("it is alpheusd of node ", node,
                                              ", or a primary: stop it"),
                     " first"));
  }
  const absl::Status opened = LogReader::Open(path).status();
  if (!opened.ok()) {
    tally->has_unknown_end = true;
    Report(std::string(opened.message()));
  }
  return reader;
}

absl::Status ForEachLeft(
    LogReader* reader, SalvageTally* tally,
    const std::function<absl::Status(const ReaderRecord&)>& visit) {
  const std::string path = reader->info().path;
  absl::Status read = reader->ForEachSalvageable(
      [&](const ReaderRecord& record) {
        if (record.state != RecordState::kCleaned &&
            record.state != RecordState::kAborted) {
          return visit(record);
        }
        ++tally->passed_over;
        return absl::OkStatus();
      },
      [&](Lsn first, Lsn after) { CountLoss(path, first, after, tally); });
  // Damage is expected here; the gaps have reported it.
  return absl::IsDataLoss(read) ? absl::OkStatus() : read;
}

std::string DescribeGaps(const SalvageTally& tally) {
  const bool is_minimum = tally.lost_open_end;
  return absl::StrCat(tally.gaps, " gaps with ", is_minimum ? "at least " : "",
                      tally.lost_lsns + (is_minimum ? 1 : 0), " LSNs lost");
}

void ReportRepair(const std::string& out, const wal::WalRepairer& repairer,
                  const SalvageTally& tally) {
  const wal::WalRepairer::Tally& repaired = repairer.tally();
  if (repaired.filled_bytes > 0) {
    Report(absl::StrCat(
        out, ": ", repaired.filled_bytes,
        " lost bytes of RocksDB's WAL files were written as damaged records: "
        "RocksDB's option wal_recovery_mode says how it treats these"));
  }
  // Where nothing is lost they are remains of files that were removed.
  if (!repaired.nameless.empty() && tally.gaps > 0) {
    Report(absl::StrCat(out, ": ", repaired.dropped_bytes, " bytes of ",
                        repaired.nameless.size(),
                        " WAL files without a name were left out: the files "
                        "were removed, or their names are lost"));
  }
}

absl::Status Verdict(const std::string& in, const std::string& out,
                     const SalvageTally& tally) {
  if (tally.gaps > 0) {
    return absl::DataLossError(
        absl::StrCat(in, ": some records can't be read any more; ", out,
                     " holds the others. Compare with a copy before using it"));
  }
  if (tally.has_unknown_end) {
    return absl::DataLossError(absl::StrCat(
        in, ": the end of the log is unknown; ", out,
        " holds all that could be found, but records at the end may be "
        "missing. Compare with a copy before using it"));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::cli
