// SPDX-License-Identifier: Apache-2.0
#include "recovery/local_opening.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "log/core/record_cursor.h"
#include "log/core/record_writer.h"
#include "log/core/region_state.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/pmem/crash_model.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"

namespace alpheus {
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
      "copy, or take what is left with `alpheus salvage`"));
}

// Where the log starts after cleaning through `lsn`.
absl::StatusOr<LogPosition> HeadBehind(const ScanInput& input,
                                       const LogPosition& end, Lsn lsn,
                                       const std::string& name) {
  if (lsn < input.head.lsn) return input.head;
  if (lsn >= end.lsn) {
    return absl::OutOfRangeError(
        absl::StrCat(name, ": LSN ", lsn.value,
                     " is to be cleaned but was never given; the log ends at ",
                     end.lsn.value - 1));
  }
  RecordCursor cursor(input.ring, *input.table, input.head,
                      input.head.offset + input.ring.capacity(),
                      RecordCursor::Payloads::kSkip);
  while (cursor.position().lsn <= lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return absl::DataLossError(
          absl::StrCat(name, ": LSN ", cursor.position().lsn.value,
                       " changed while the log was being opened"));
    }
  }
  return cursor.position();
}

// A log whose numbers are near their bounds could be opened and written, and
// then never be read again. Only a forged region has such numbers.
absl::Status CheckRoomToGoOn(const std::string& name,
                             const RingLogStart& start) {
  const Superline& next = start.superline;
  const bool has_room = start.end.lsn.value <= kLsnMax / 2 &&
                        start.end.offset.value <= kOffsetMax / 2 &&
                        next.promised_epoch.value <= kNumberMax / 2 &&
                        next.table_seq <= kNumberMax / 2 &&
                        start.superline_seq <= kNumberMax / 2;
  if (has_room) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name, ": LSN ", start.end.lsn.value, ", ring offset ",
      start.end.offset.value, ", epoch ", next.promised_epoch.value,
      ", epoch table ", next.table_seq, " or superline ", start.superline_seq,
      " is beyond what any log reaches: not written by this program, or by a "
      "faulty one. Nothing was changed. Restore the region from a copy"));
}

// The writes of an opening, in their order; each step returns when it is
// persisted. See the crash states in the header.
template <Persistence P>
class Installer {
 public:
  Installer(P& pmem, std::span<std::byte> region, const RegionState& state)
      : pmem_(pmem), region_(region), state_(state) {}

  // 1. What recovery read may only have been visible (H7): kill -9 leaves
  // stores in the cache that a later power cut takes. That goes for the copies
  // of superline, table and watermark too: the one that is about to be
  // overwritten may be the only one on media. Records that are proven to have
  // been persisted need no second flush; `unproven` is where the others start.
  absl::Status PersistWhatWasRead(const ScanResult& scan, RingOffset unproven) {
    const Ring ring = RingOf(region_, state_.superline);
    for (const DamagedPad& pad : scan.damaged_pads) {
      if (IsMutant(Mutant::kDamagedPadStays)) break;
      const EpochEntry* owner = state_.table.Owner(pad.next_lsn);
      WritePad(pmem_, ring, state_.table.KeyOf(owner), owner->epoch,
               pad.next_lsn, Lsn(0), pad.offset);
      pmem_.Flush(ring.At(pad.offset), kRecordHeaderBytes);
    }
    if (!IsMutant(Mutant::kOnlyTheRingFlushed)) {
      pmem_.Flush(region_.data(), state_.superline.ring_offset);
    }
    if (IsMutant(Mutant::kVisibleIsRecovered)) unproven = scan.end.offset;
    const uint64_t bytes = scan.end.offset - unproven;
    const uint64_t until_end = ring.UntilEnd(unproven);
    pmem_.Flush(ring.At(unproven), std::min(bytes, until_end));
    if (bytes > until_end)
      pmem_.Flush(ring.At(RingOffset(0)), bytes - until_end);
    return Fenced(pmem_.Fence());
  }

  // 2. Before any copy is touched, so that a copy that a power cut tears from
  // here on is not taken for damage.
  absl::Status UnmarkCleanClose() {
    if (IsMutant(Mutant::kCleanCloseStays)) return absl::OkStatus();
    uint64_t* word = CleanCloseAddress(region_);
    pmem_.Store8(word, 0);
    return Fenced(Persist(pmem_, word, sizeof(*word)));
  }

  // 3. to 5. The copy that the superline does not name is overwritten first.
  absl::Status InstallEpoch(const EpochTable& table, const Superline& superline,
                            uint64_t superline_seq) {
    const CellPlace place = EpochTablePlace(region_, superline);
    const bool named_first = IsMutant(Mutant::kNamedTableFirst);
    const int first = named_first ? state_.table_copy : 1 - state_.table_copy;
    const std::vector<std::byte> content = table.Encode();
    if (!IsMutant(Mutant::kSuperlineBeforeTable)) {
      ALPHEUS_RETURN_IF_ERROR(Fenced(
          WriteCellCopy(pmem_, place, first, superline.table_seq, content)));
    }
    ALPHEUS_RETURN_IF_ERROR(Fenced(
        WriteCell(pmem_, SuperlinePlace(region_), state_.superline_cell.newest,
                  superline_seq, EncodeSuperline(superline))));
    if (IsMutant(Mutant::kOneTableCopy)) return absl::OkStatus();
    return Fenced(
        WriteCellCopy(pmem_, place, 1 - first, superline.table_seq, content));
  }

  // 6. One line after the other, a bad one first, so that one always holds.
  absl::Status RenewWatermarks(Epoch epoch, Lsn lsn) {
    if (IsMutant(Mutant::kWatermarkGoesBack)) lsn = Lsn(0);
    const int first = state_.watermarks.NextLine(epoch);
    for (const int line : {first, 1 - first}) {
      const WatermarkFormat watermark =
          EncodeWatermark(state_.superline.log_id, line, {epoch, lsn});
      pmem_.CopyLinesNt(WatermarkLine(region_, line), &watermark, 1);
      if (IsMutant(Mutant::kWatermarksAtOnce) && line == first) continue;
      ALPHEUS_RETURN_IF_ERROR(Fenced(pmem_.Fence()));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fenced(bool persisted) const {
    return persisted ? absl::OkStatus() : pmem_.Error();
  }

  P& pmem_;
  const std::span<std::byte> region_;
  const RegionState& state_;
};

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
  if (found.configuration.replica_count != 1 || found.repairing) {
    return absl::UnimplementedError(absl::StrCat(
        options.name,
        ": a replica of a log with N=", found.configuration.replica_count,
        found.repairing ? " in the middle of a repair" : "",
        " can't be opened on its own. Nothing was changed"));
  }
  ScanInput input = ScanInputOf(region, state);
  OpenedEpoch opened;
  opened.start.index = std::make_shared<LsnIndex>(found.ring_capacity);
  LsnIndex& index = *opened.start.index;
  opened.scan = ScanLog(input, &index);
  // The end is a position too, and the one that is asked for below.
  if (!IsMutant(Mutant::kEndUnindexed)) index.Note(opened.scan.end);
  if (opened.scan.verdict == TailVerdict::kCorrupt) {
    return Corrupt(options.name, found, opened.scan);
  }
  const LogPosition& end = opened.scan.end;
  ALPHEUS_ASSIGN_OR_RETURN(
      opened.head,
      HeadBehind(input, end, options.cleanup_through, options.name));
  if (opened.head != input.head) {
    // What is cleaned now is not among what is reported as recovered.
    input.head = opened.head;
    opened.scan = ScanLog(input);
  }

  const bool stay = IsMutant(Mutant::kEpochStays) && found.log_epoch != Epoch();
  const Epoch epoch =
      std::max(found.promised_epoch, found.log_epoch) + (stay ? 0 : 1);
  const uint64_t nonce = IsMutant(Mutant::kNonceStays) ? 1 : random.Next();
  const EpochEntry entry{epoch, nonce, end.lsn, end.offset, end.chain};
  const EpochTable table =
      stay ? state.table : state.table.With(entry, opened.head.lsn);
  if (table.entries().size() > found.table_capacity) {
    return absl::ResourceExhaustedError(absl::StrCat(
        options.name, ": the epoch table is full: records of ",
        found.table_capacity,
        " openings are live. Nothing was changed. Clean the oldest with "
        "`alpheus cleanup --through LSN` or LogOptions::cleanup_through; "
        "epoch ",
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
  if (!IsMutant(Mutant::kPromiseForgotten)) next.promised_epoch = epoch;
  next.log_epoch = epoch;
  next.table_seq = found.table_seq + 1;
  next.head_lsn = opened.head.lsn;
  next.head_offset = opened.head.offset;
  next.head_chain = opened.head.chain;

  ALPHEUS_RETURN_IF_ERROR(CheckRoomToGoOn(options.name, opened.start));

  Installer<P> installer(pmem, region, state);
  const Lsn unproven = std::max(opened.scan.proven_lsn + 1, opened.head.lsn);
  ALPHEUS_RETURN_IF_ERROR(installer.PersistWhatWasRead(
      opened.scan, index.Nearest(unproven, opened.head).offset));
  ALPHEUS_RETURN_IF_ERROR(installer.UnmarkCleanClose());
  ALPHEUS_RETURN_IF_ERROR(
      installer.InstallEpoch(table, next, opened.start.superline_seq));
  ALPHEUS_RETURN_IF_ERROR(installer.RenewWatermarks(epoch, end.lsn - 1));
  return opened;
}

#define ALPHEUS_INSTANTIATE(P)                              \
  template absl::StatusOr<OpenedEpoch> OpenEpochLocally<P>( \
      P&, std::span<std::byte>, const LocalOpeningOptions&, RandomSource&)
ALPHEUS_INSTANTIATE(LibpmemPersistence);
ALPHEUS_INSTANTIATE(MsyncPersistence);
ALPHEUS_INSTANTIATE(ModelPersistence);
#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
