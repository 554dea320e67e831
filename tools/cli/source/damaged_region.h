// SPDX-License-Identifier: Apache-2.0
// damaged_region: reads the rest of a damaged region, and counts the losses.
#ifndef ALPHEUS_TOOLS_CLI_SOURCE_DAMAGED_REGION_H_
#define ALPHEUS_TOOLS_CLI_SOURCE_DAMAGED_REGION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log_reader.h"
#include "api/rocksdb/store/wal_repairer.h"

namespace alpheus::cli {

struct SalvageTally {
  uint64_t records = 0;
  uint64_t payload_bytes = 0;
  uint64_t passed_over = 0;  // cleaned or aborted: not wanted
  uint64_t gaps = 0;
  uint64_t lost_lsns = 0;        // in gaps whose end is known
  bool lost_open_end = false;    // a gap without an end: number unknown
  bool has_unknown_end = false;  // records at the end may be missing unseen
};

// Writes a message to standard error.
void Report(const std::string& message);

// Opens a region, even one that reading refuses (no watermark, a truncated
// file); then the log's end is unknown. Errors: FailedPrecondition (a writer
// has it open); as LogReader::OpenForSalvage.
absl::StatusOr<std::unique_ptr<LogReader>> OpenDamaged(const std::string& path,
                                                       SalvageTally* tally);

// Visits the wanted records that can be read; reports and counts the others.
// Errors: as LogReader::ForEachSalvageable, except DataLoss.
absl::Status ForEachLeft(
    LogReader* reader, SalvageTally* tally,
    const std::function<absl::Status(const ReaderRecord&)>& visit);

std::string DescribeGaps(const SalvageTally& tally);
// Reports the damage in RocksDB's WAL files.
void ReportRepair(const std::string& out, const wal::WalRepairer& repairer,
                  const SalvageTally& tally);

// Returns DataLoss if anything of `in` is or may be lost; `out` has the rest.
absl::Status Verdict(const std::string& in, const std::string& out,
                     const SalvageTally& tally);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_SOURCE_DAMAGED_REGION_H_
