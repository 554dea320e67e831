// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/local_opening.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/backup_composer.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "log/pmem/backends.h"
#include "recovery/protocol/deletion.h"
#include "recovery/replica/installer.h"
#include "recovery/replica/number_bounds.h"

namespace alpheus::recovery {
namespace {

absl::Status Corrupt(const std::string& name, const Superline& superline,
                     const ScanResult& scan) {
  const Ring ring(nullptr, superline.ring_capacity);
  return absl::DataLossError(absl::StrCat(
      name, ": LSN ", scan.end.lsn.value, " at offset ",
      superline.ring_offset + ring.Place(scan.end.offset), " can't be read (",
      scan.bad_payload ? "its payload does not match its checksum"
                       : "no valid header",
      "), though records up to LSN ", scan.proven_lsn.value,
      " were acknowledged. Nothing was changed. Restore the region from a "
      "copy, or take what is left with `alpheus salvage ",
      name, " OUT`"));
}

// Returns where the log starts after records up to `lsn` are cleaned. Walks
// from where the scan began, if the record lies there.
absl::StatusOr<LogPosition> HeadAfter(const ScanInput& input,
                                      const LogPosition& end, Lsn lsn,
                                      const std::string& name) {
  if (lsn < input.head.lsn) return input.head;
  if (lsn >= end.lsn) {
    return absl::OutOfRangeError(absl::StrCat(
        name, ": LSN ", lsn.value,
        " is to be cleaned but was never assigned; the log ends at ",
        end.lsn.value - 1));
  }
  const LogPosition& from = lsn >= input.start.lsn ? input.start : input.head;
  RecordCursor cursor(input.ring, *input.table, from,
                      input.head.offset + input.ring.capacity(),
                      RecordCursor::Payloads::kSkip);
  while (cursor.position().lsn <= lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      const LogPosition& at = cursor.position();
      return absl::DataLossError(absl::StrCat(
          name, ": LSN ", at.lsn.value, " at ring offset ", at.offset.value,
          " is to be cleaned with those up to LSN ", lsn.value,
          ", and its header can't be read, though it was persisted. Nothing "
          "was changed. `alpheus verify` says what is damaged; take what is "
          "left with `alpheus salvage`"));
    }
  }
  return cursor.position();
}

std::vector<std::string> RepairsOf(const RegionState& state,
                                   const ScanResult& scan) {
  std::vector<std::string> repairs = state.single_faults;
  for (const DamagedPad& pad : scan.damaged_pads) {
    repairs.push_back(absl::StrCat("PAD before LSN ", pad.next_lsn.value,
                                   " could not be read"));
  }
  return repairs;
}

}  // namespace

template <Persistence P>
absl::StatusOr<OpenedEpoch> OpenEpochLocally(P& pmem,
                                             std::span<std::byte> region,
                                             const LocalOpeningOptions& options,
                                             RandomSource& random) {
  ALPHEUS_ASSIGN_OR_RETURN(const RegionState state,
                           ReadRegionState(region, options.name));
  const Superline& found = state.superline;
  if (options.expected_log_id && *options.expected_log_id != found.log_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.name, ": holds log ", found.log_id.ToString(),
                     ", expected ", options.expected_log_id->ToString(),
                     ". Nothing was changed; name the right region"));
  }
  if (found.deletion != Deletion::kNone) {  // P-D2
    return DeletedError(options.name, found.deletion);
  }
  if (IsBackup(found)) {
    return absl::FailedPreconditionError(absl::StrCat(
        options.name, ": is a backup of log ", found.log_id.ToString(),
        ", which is read and never written. Nothing was changed. `alpheus cat "
        "--file ",
        options.name, "` shows its records, `alpheus salvage ", options.name,
        " OUT` makes a log of them"));
  }
  if (found.configuration.replica_count != 1 || found.repairing) {
    return absl::UnimplementedError(absl::StrCat(
        options.name,
        ": a replica of a log with N=", found.configuration.replica_count,
        found.repairing ? " in the middle of a repair" : "",
        " can't be opened on its own. Nothing was changed"));
  }
  ScanInput input =
      OpeningScanOf(region, state, options.file, options.read_whole_bytes_max);
  OpenedEpoch opened;
  opened.start.index = std::make_shared<LsnIndex>(found.ring_capacity);
  LsnIndex& index = *opened.start.index;
  if (input.start != input.head) index.BeginAt(input.start);
  opened.scan = ScanLog(input, &index);
  opened.start.last = {opened.scan.last.offset, opened.scan.last.chain};
  // The end is a position, too: it is looked up below.
  index.Note(opened.scan.end);
  if (opened.scan.verdict == TailVerdict::kCorrupt) {
    return Corrupt(options.name, found, opened.scan);
  }
  const LogPosition& end = opened.scan.end;
  ALPHEUS_ASSIGN_OR_RETURN(
      opened.head,
      HeadAfter(input, end, options.cleanup_through, options.name));
  if (opened.head != input.head) {
    // Records that are cleaned now are not reported as recovered.
    input.head = opened.head;
    if (input.start.lsn < input.head.lsn) input.start = input.head;
    opened.scan = ScanLog(input);
  }
  opened.start.read_from = input.start;

  const Epoch epoch = std::max(found.promised_epoch, found.log_epoch) + 1;
  const uint64_t nonce = random.Next();
  const EpochEntry entry{epoch, nonce, end.lsn, end.offset, end.chain};
  const EpochTable table = state.table.With(entry, opened.head.lsn);
  if (table.entries().size() > found.table_capacity) {
    return absl::ResourceExhaustedError(absl::StrCat(
        options.name, ": the epoch table is full: records of ",
        found.table_capacity,
        " openings are live. Nothing was changed. Clean the oldest with "
        "`alpheus cleanup --file ",
        options.name, " --through LSN` or LogOptions::cleanup_through; epoch ",
        table.entries()[1].epoch.value, " starts at LSN ",
        table.entries()[1].start_lsn.value));
  }

  opened.epoch = epoch;
  opened.previous_epoch = found.log_epoch;
  opened.was_closed_cleanly = state.closed_cleanly;
  opened.repairs = RepairsOf(state, opened.scan);
  opened.start.end = end;
  opened.start.table = table;
  opened.start.superline_seq =
      state.superline_cell.copies[*state.superline_cell.newest].seq + 1;
  Superline& next = opened.start.superline;
  next = found;
  next.promised_epoch = epoch;
  next.log_epoch = epoch;
  next.table_seq = found.table_seq + 1;
  next.head_lsn = opened.head.lsn;
  next.head_offset = opened.head.offset;
  next.head_chain = opened.head.chain;
  next.ceiling = CeilingAfter(end.offset, opened.head.offset,
                              found.ring_capacity, options.ceiling_step_bytes);

  ALPHEUS_RETURN_IF_ERROR(
      CheckRoomToContinue(options.name, next, opened.start.superline_seq, end));

  // Records that are proven persisted need no second flush.
  const Lsn proven_end = std::max(opened.scan.proven_lsn + 1, opened.head.lsn);
  const RingOffset unproven = index.Nearest(proven_end, opened.head).offset;
  Installer<P> installer(pmem, region, state);
  installer.RewritePads(state.table, opened.scan.damaged_pads);
  installer.FlushBeforeRing();
  installer.FlushRing(unproven, end.offset);
  ALPHEUS_RETURN_IF_ERROR(installer.Fence());
  ALPHEUS_RETURN_IF_ERROR(installer.UnmarkCleanClose());
  ALPHEUS_RETURN_IF_ERROR(
      installer.InstallEpoch(table, next, opened.start.superline_seq));
  ALPHEUS_RETURN_IF_ERROR(
      installer.RenewWatermarks({epoch, end.lsn - 1, opened.start.last}));
  return opened;
}

#define ALPHEUS_INSTANTIATE(P)                              \
  template absl::StatusOr<OpenedEpoch> OpenEpochLocally<P>( \
      P&, std::span<std::byte>, const LocalOpeningOptions&, RandomSource&)
ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);
#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus::recovery
