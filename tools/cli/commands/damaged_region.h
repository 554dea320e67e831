// SPDX-License-Identifier: Apache-2.0
// damaged_region: reads what is left of a region, and counts what is not.
#ifndef ALPHEUS_TOOLS_CLI_COMMANDS_DAMAGED_REGION_H_
#define ALPHEUS_TOOLS_CLI_COMMANDS_DAMAGED_REGION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log_reader.h"
#include "api/rocksdb/store/wal_mender.h"

namespace alpheus::cli {

struct SalvageTally {
  uint64_t records = 0;
  uint64_t payload_bytes = 0;
  uint64_t passed_over = 0;  // cleaned or aborted: no longer wanted
  uint64_t gaps = 0;
  uint64_t lost_lsns = 0;        // in gaps whose end is known
  bool lost_open_end = false;    // a gap without an end: number unknown
  bool has_unknown_end = false;  // records at the end may be missing unseen
};

// On standard error.
void Tell(const std::string& message);

// Opens also what opening for reading refuses (no watermark, a file cut short);
// then nothing says where the log ended. Errors: FailedPrecondition (a writer
// has it open); as LogReader::OpenForSalvage.
absl::StatusOr<std::unique_ptr<LogReader>> OpenDamaged(const std::string& path,
                                                       SalvageTally* tally);

// Visits the records that are wanted and can be read; tells and counts the
// others. Errors: as LogReader::ForEachSalvageable, but DataLoss.
absl::Status ForEachLeft(
    LogReader* reader, SalvageTally* tally,
    const std::function<absl::Status(const ReaderRecord&)>& visit);

std::string DescribeGaps(const SalvageTally& tally);
// The damage in RocksDB's WAL files.
void TellMending(const std::string& out, const WalMender& mender,
                 const SalvageTally& tally);

// DataLoss if something was lost of `in`, or may have been; `out` has the rest.
absl::Status Verdict(const std::string& in, const std::string& out,
                     const SalvageTally& tally);

}  // namespace alpheus::cli

#endif  // ALPHEUS_TOOLS_CLI_COMMANDS_DAMAGED_REGION_H_
