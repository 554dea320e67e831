// SPDX-License-Identifier: Apache-2.0
#include "alpheus/log_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/status_macros.h"
#include "log/core/read/record_cursor.h"
#include "log/core/read/scan.h"
#include "log/core/ring/backup_composer.h"
#include "log/core/ring/region_state.h"
#include "log/format/layout.h"
#include "log/format/superline.h"
#include "log/pmem/region.h"

namespace alpheus {
namespace {

// Passes in a row that a writer may disturb before that is an error.
constexpr int kPassesMax = 5;

absl::StatusOr<RegionState> ReadState(const Region& region, ReadingMode mode) {
  return ReadSharedRegionState(region.bytes(), region.path(), mode,
                               [&region] { return region.HasWriter(); });
}

// Returns a region for salvage: as mapped, or, if the file is shorter than its
// superline says, a copy in memory with zeros after the file's end.
absl::StatusOr<Region> PadIfTruncated(Region region) {
  const size_t bytes = region.bytes().size();
  size_t wanted = kTableOffset;
  if (bytes >= kTableOffset) {
    const CellState cell = ReadCell(SuperlinePlace(region.bytes()));
    if (!cell.newest) return region;
    const absl::StatusOr<Superline> superline =
        DecodeSuperline(cell.copies[*cell.newest].content);
    if (!superline.ok()) return region;
    wanted = superline->region_bytes;
  }
  if (bytes >= wanted) return region;
  return region.ZeroPadded(wanted);
}

RegionInfo MakeInfo(const Region& region, const RegionState& state) {
  const Superline& superline = state.superline;
  RegionInfo info;
  info.path = region.path();
  const CellState& cell = state.superline_cell;
  info.format_version = FormatVersionOf(cell.copies[*cell.newest].content);
  info.has_writer = region.HasWriter();
  info.cluster_id = superline.cluster_id;
  info.log_id = superline.log_id;
  info.node = superline.node;
  info.incarnation = superline.incarnation;
  info.configuration_id = superline.configuration.id;
  info.replica_count = superline.configuration.replica_count;
  info.write_quorum = superline.configuration.write_quorum;
  info.region_bytes = superline.region_bytes;
  info.ring_offset = superline.ring_offset;
  info.ring_capacity = superline.ring_capacity;
  info.promised_epoch = superline.promised_epoch;
  info.log_epoch = superline.log_epoch;
  info.repairing = superline.repairing;
  info.closed_cleanly = state.closed_cleanly;
  info.is_backup = IsBackup(superline);
  for (const EpochEntry& entry : state.table.entries()) {
    info.epochs.push_back({entry.epoch, entry.start_lsn});
  }
  info.head_lsn = superline.head_lsn;
  info.head_offset = superline.head_offset.value;
  info.watermark_lsn = state.watermarks.Proven(superline.log_epoch);
  info.single_faults = state.single_faults;
  return info;
}

}  // namespace

class LogReader::Impl {
 public:
  Impl(Region region, RegionState state, ReadingMode mode)
      : region_(std::move(region)),
        mode_(mode),
        state_(std::move(state)),
        info_(MakeInfo(region_, state_)),
        end_(state_.head()) {}

  const RegionInfo& info() const { return info_; }

  absl::Status ForEach(
      Lsn from, const std::function<absl::Status(const ReaderRecord&)>& visit) {
    for (int pass = 1;; ++pass) {
      ALPHEUS_RETURN_IF_ERROR(Refresh());
      bool has_shown = false;
      absl::Status said;
      const absl::Status status = Pass(from, [&](const ReaderRecord& record) {
        has_shown = true;
        said = visit(record);
        return said;
      });
      ALPHEUS_RETURN_IF_ERROR(Whole());
      const bool is_nothing = status.ok() && !has_shown && !info_.has_writer;
      const bool is_in_doubt =
          said.ok() && (is_nothing || absl::IsDataLoss(status));
      if (!is_in_doubt || IsAsItWas()) return status;
      if (has_shown || pass == kPassesMax) return OpenedMeanwhile();
    }
  }

  absl::Status ForEachSalvageable(
      const std::function<absl::Status(const ReaderRecord&)>& visit,
      const std::function<void(Lsn, Lsn)>& lost) {
    ALPHEUS_RETURN_IF_ERROR(Refresh());
    if (info_.has_writer) {
      return absl::FailedPreconditionError(absl::StrCat(
          info_.path,
          ": a writer has this log open; salvage is for a log that "
          "can't be opened"));
    }
    const Survey survey = MakeSurvey(state_.head());
    const ScanInput input =
        ScanInputOf(region_.bytes(), state_, region_.file());
    RecordCursor cursor = HeaderCursor(state_.head());
    for (;;) {
      const LogPosition at = cursor.position();
      if (ReadNext(cursor)) {
        ALPHEUS_RETURN_IF_ERROR(visit(MakeRecord(cursor, survey)));
        continue;
      }
      // After the last proven LSN an unreadable place is the ordinary end.
      if (at.lsn > survey.proven_lsn) return Whole();
      if (cursor.position().lsn > at.lsn) {  // only the payload is bad
        lost(at.lsn, cursor.position().lsn);
        continue;
      }
      const LogPosition after = FindRecordAfter(input, at);
      lost(at.lsn, after.lsn);
      if (after.lsn == Lsn(0)) return Whole();
      cursor.Resume(after);
    }
  }

  VerifyReport Verify(const std::function<void(double)>& progress) {
    VerifyReport report;
    for (int pass = 1;; ++pass) {
      report = VerifyReport();
      report.status = Refresh();
      if (!report.status.ok()) {
        report.verdict = TailVerdictName(TailVerdict::kCorrupt);
        break;
      }
      info_.has_writer ? VerifyLive(&report) : VerifyDead(progress, &report);
      if (const absl::Status whole = Whole(); !whole.ok()) {
        report.status = whole;
        break;
      }
      const bool is_sure = report.status.ok() && info_.has_writer;
      if (is_sure || IsAsItWas()) break;
      if (pass == kPassesMax) {
        report.status = OpenedMeanwhile();
        report.verdict = TailVerdictName(TailVerdict::kComplete);
        break;
      }
    }
    if (progress) progress(1.0);
    return report;
  }

 private:
  // Result of a first pass over the headers from the start of the pass (live)
  // or over everything (dead). Headers before the start name nothing after it.
  struct Survey {
    Lsn end_lsn;            // records before it are shown
    Lsn proven_lsn;         // records up to it were persisted here
    Lsn durable_lsn;        // records up to it are durable (LR1)
    Lsn named_durable_lsn;  // a header says so
    bool corrupt = false;
  };

  // Shows the records from `from` on, once.
  absl::Status Pass(
      Lsn from, const std::function<absl::Status(const ReaderRecord&)>& visit) {
    if (from != Lsn(0) && from < info_.head_lsn) return Cleaned(from);
    const LogPosition start = StartOf(from);
    const Survey survey = MakeSurvey(start);
    ALPHEUS_RETURN_IF_ERROR(Walk(survey, start, from, visit));
    return SingleFaults();
  }

  // LR4. Returns whether no writer came or opened. Each opening writes the
  //      superline, and has an epoch of its own.
  bool IsAsItWas() const {
    if (!info_.has_writer && region_.HasWriter()) return false;
    const CellState cell = ReadCell(SuperlinePlace(region_.bytes()));
    // The copies are written one after the other, but may be read in the other
    // order.
    if (!cell.newest) return !region_.HasWriter();
    const CellCopy& copy = cell.copies[*cell.newest];
    if (!info_.has_writer) return copy.seq == SeqOf(state_);
    const absl::StatusOr<Superline> now = DecodeSuperline(copy.content);
    return !now.ok() || now->log_epoch == state_.superline.log_epoch;
  }

  static uint64_t SeqOf(const RegionState& state) {
    return state.superline_cell.copies[*state.superline_cell.newest].seq;
  }

  // Fails if the file has lost a page: zeros in its place are no end of the
  // log.
  absl::Status Whole() const { return region_.alarm()->status(); }

  absl::Status OpenedMeanwhile() const {
    return absl::OutOfRangeError(absl::StrCat(
        info_.path,
        ": a writer opened the log while it was being read. Read it again"));
  }

  // Reads the region's state, with which each pass starts.
  absl::Status Refresh() {
    ALPHEUS_ASSIGN_OR_RETURN(state_, ReadState(region_, mode_));
    info_ = MakeInfo(region_, state_);
    return absl::OkStatus();
  }

  // LR3. Returns the start of a pass that shows nothing before `from`.
  LogPosition StartOf(Lsn from) const {
    const bool goes_on = info_.has_writer && info_.replica_count == 1 &&
                         LastEpochOf(state_) == end_epoch_ &&
                         info_.head_lsn <= end_.lsn && end_.lsn <= from;
    return goes_on ? end_ : state_.head();
  }

  // Returns the last epoch, whose nonce differs from any other writer's; empty
  // if nobody wrote.
  static EpochEntry LastEpochOf(const RegionState& state) {
    const std::span<const EpochEntry> entries = state.table.entries();
    return entries.empty() ? EpochEntry() : entries.back();
  }

  Survey MakeSurvey(const LogPosition& start) const {
    const ScanInput input =
        ScanInputOf(region_.bytes(), state_, region_.file());
    Survey survey;
    if (!info_.has_writer) {
      const ScanResult scan = ScanLog(input);
      survey.end_lsn = scan.end.lsn;
      survey.proven_lsn = scan.proven_lsn;
      survey.durable_lsn = DurableLsn(scan.proven_lsn, scan.named_durable_lsn);
      survey.corrupt = scan.verdict == TailVerdict::kCorrupt;
      if (state_.watermarks.both_bad()) {  // salvage: any record is evidence
        survey.proven_lsn = std::max(survey.proven_lsn, scan.cut_last_lsn);
      }
      return survey;
    }
    // While a writer has the log open, only records that a header or the
    // watermark proves persisted are shown (LR2); later ones may be half
    // written.
    Lsn named;
    RecordCursor cursor = HeaderCursor(start);
    while (cursor.Next() == RecordCursor::Step::kRecord) {
      named = std::max(named, Lsn(cursor.record().header.durable_lsn()));
    }
    survey.proven_lsn = std::max(input.proven_lsn, named);
    survey.durable_lsn = DurableLsn(survey.proven_lsn, named);
    survey.named_durable_lsn = named;
    survey.end_lsn = survey.proven_lsn + 1;
    return survey;
  }

  // LR1. Returns the durable LSN. `proven`: persisted here; `named`: durable
  //      according to headers.
  Lsn DurableLsn(Lsn proven, Lsn named) const {
    if (info_.write_quorum <= 1) return proven;
    return std::max(named, info_.head_lsn - 1);
  }

  // Delivers the records of the survey from `start` on, without those before
  // `from`.
  absl::Status Walk(
      const Survey& survey, const LogPosition& start, Lsn from,
      const std::function<absl::Status(const ReaderRecord&)>& visit) {
    RecordCursor cursor = HeaderCursor(start);
    end_ = start;
    end_epoch_ = LastEpochOf(state_);
    while (cursor.position().lsn < survey.end_lsn) {
      const LogPosition at = cursor.position();
      const bool is_shown = at.lsn >= from;
      if (!(is_shown ? ReadNext(cursor) : PassNext(cursor))) {
        return Unreadable(at, survey.proven_lsn);
      }
      if (is_shown) {
        ALPHEUS_RETURN_IF_ERROR(visit(MakeRecord(cursor, survey)));
      }
      end_ = cursor.position();
    }
    return survey.corrupt ? Unreadable(cursor.position(), survey.proven_lsn)
                          : absl::OkStatus();
  }

  void VerifyLive(VerifyReport* report) {
    const Survey survey = MakeSurvey(state_.head());
    report->proven_lsn = survey.proven_lsn;
    report->durable_lsn = survey.durable_lsn;
    report->named_durable_lsn = survey.named_durable_lsn;
    report->end_lsn = info_.head_lsn - 1;
    report->status = Walk(survey, state_.head(), Lsn(0),
                          [report](const ReaderRecord& record) {
                            Count(record, report);
                            return absl::OkStatus();
                          });
    report->tail_offset = end_.offset.value;
    report->verdict = TailVerdictName(absl::IsDataLoss(report->status)
                                          ? TailVerdict::kCorrupt
                                          : TailVerdict::kComplete);
  }

  static void Count(const ReaderRecord& record, VerifyReport* report) {
    report->end_lsn = record.lsn;
    switch (record.state) {
      case RecordState::kCleaned:
        ++report->cleaned_records;
        break;
      case RecordState::kAborted:
        ++report->aborted_records;
        break;
      default:
        ++report->data_records;
        report->payload_bytes += record.payload.size();
    }
  }

  void VerifyDead(const std::function<void(double)>& progress,
                  VerifyReport* report) {
    const ScanInput input =
        ScanInputOf(region_.bytes(), state_, region_.file());
    uint64_t seen = 0;
    const ScanResult scan =
        ScanLog(input, [&](const LogPosition&, const RecordView& record) {
          constexpr uint64_t kRecordsPerReport = 4096;
          if (!progress || ++seen % kRecordsPerReport != 0) return;
          progress(static_cast<double>(record.offset - input.head.offset) /
                   static_cast<double>(input.ring.capacity()));
        });
    report->verdict = TailVerdictName(scan.verdict);
    report->end_lsn = scan.end.lsn - 1;
    report->tail_offset = scan.end.offset.value;
    report->proven_lsn = scan.proven_lsn;
    report->durable_lsn = DurableLsn(scan.proven_lsn, scan.named_durable_lsn);
    report->named_durable_lsn = scan.named_durable_lsn;
    report->data_records = scan.data_records;
    report->cleaned_records = scan.cleaned_records;
    report->aborted_records = scan.aborted_records;
    report->damaged_pads = scan.damaged_pads.size();
    report->payload_bytes = scan.payload_bytes;
    report->cut_records = scan.cut_records;
    report->status = Judge(scan);
  }

  RecordCursor HeaderCursor(const LogPosition& start) const {
    const Superline& superline = state_.superline;
    return {RingOf(region_.bytes(), superline), state_.table, start,
            superline.head_offset + superline.ring_capacity,
            RecordCursor::Payloads::kSkip};
  }

  // Passes a record without reading its payload.
  static bool PassNext(RecordCursor& cursor) {
    return cursor.Next() == RecordCursor::Step::kRecord;
  }

  // Reads the record at the cursor into payload_, copying before checking. On
  // false the cursor has passed the record if at least its header holds.
  bool ReadNext(RecordCursor& cursor) {
    if (!PassNext(cursor)) return false;
    const RecordView& record = cursor.record();
    payload_.assign(record.payload.begin(), record.payload.end());
    return record.cleaned ||
           PayloadIsValid(record.seed, record.header, payload_);
  }

  ReaderRecord MakeRecord(const RecordCursor& cursor,
                          const Survey& survey) const {
    const RecordView& view = cursor.record();
    const Ring ring = RingOf(region_.bytes(), state_.superline);
    ReaderRecord record;
    record.lsn = view.lsn();
    record.epoch = view.epoch();
    record.offset = state_.superline.ring_offset + ring.Place(view.offset);
    record.payload = payload_;
    if (view.cleaned) {
      record.state = RecordState::kCleaned;
    } else if (view.aborted()) {
      record.state = RecordState::kAborted;
    } else if (view.lsn() > survey.durable_lsn) {
      record.state = RecordState::kCompleted;
    }
    return record;
  }

  absl::Status Cleaned(Lsn lsn) const {
    return absl::OutOfRangeError(absl::StrCat(
        info_.path, ": LSN ", lsn.value, " was cleaned; the log starts at LSN ",
        info_.head_lsn.value, " now. Read from there on"));
  }

  // Returns the error of a record that a live writer overtook, or that is
  // damaged.
  absl::Status Unreadable(const LogPosition& at, Lsn proven_lsn) const {
    const absl::StatusOr<RegionState> now = ReadState(region_, mode_);
    if (now.ok() && now->superline.head_lsn > at.lsn) {
      return absl::OutOfRangeError(absl::StrCat(
          info_.path, ": LSN ", at.lsn.value,
          " was cleaned and its space reused while it was being read; the log "
          "starts at LSN ",
          now->superline.head_lsn.value, " now. Read again from there on"));
    }
    const Ring ring = RingOf(region_.bytes(), state_.superline);
    return absl::DataLossError(absl::StrCat(
        info_.path, ": LSN ", at.lsn.value, " at offset ",
        state_.superline.ring_offset + ring.Place(at.offset),
        " can't be read, though records up to LSN ", proven_lsn.value,
        info_.replica_count > 1
            ? " were persisted here. `alpheus scrub --cluster FILE --log NAME` "
              "repairs this replica from the others, as opening the log does; "
              "leave it where it is"
            : absl::StrCat(
                  " were acknowledged. Restore the region from a copy, "
                  "or take what is left with `alpheus salvage ",
                  info_.path, " OUT`")));
  }

  // Returns DataLoss for bad single copies after a clean close, when every copy
  // was whole. After a crash a bad one may be an interrupted update. So it may
  // if the log was closed during this reading: the copies are read again.
  absl::Status SingleFaults() const {
    if (!info_.closed_cleanly || info_.single_faults.empty()) {
      return absl::OkStatus();
    }
    ALPHEUS_ASSIGN_OR_RETURN(const RegionState now, ReadState(region_, mode_));
    if (!now.closed_cleanly || now.single_faults.empty()) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat(
        info_.path, ": ", absl::StrJoin(now.single_faults, "; "),
        ". All records can be read; opening the log for writing makes it "
        "whole again"));
  }

  absl::Status Judge(const ScanResult& scan) const {
    if (scan.verdict == TailVerdict::kCorrupt) {
      return Unreadable(scan.end, scan.proven_lsn);
    }
    ALPHEUS_RETURN_IF_ERROR(SingleFaults());
    if (info_.closed_cleanly && !scan.damaged_pads.empty()) {
      const Ring ring = RingOf(region_.bytes(), state_.superline);
      return absl::DataLossError(absl::StrCat(
          info_.path, ": the PAD before LSN ",
          scan.damaged_pads[0].next_lsn.value, " at offset ",
          state_.superline.ring_offset +
              ring.Place(scan.damaged_pads[0].offset),
          " can't be read. All records can; opening the log for writing makes "
          "it whole again"));
    }
    return absl::OkStatus();
  }

  const Region region_;
  const ReadingMode mode_;
  RegionState state_;
  RegionInfo info_;
  std::vector<std::byte> payload_;
  LogPosition end_;       // after the last record that Walk delivered
  EpochEntry end_epoch_;  // last epoch at that time
};

const char* RecordStateName(RecordState state) {
  switch (state) {
    case RecordState::kDurable:
      return "durable";
    case RecordState::kCompleted:
      return "completed";
    case RecordState::kCleaned:
      return "cleaned";
    case RecordState::kAborted:
      return "aborted";
  }
  return "unknown";
}

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::Open(
    const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::OpenForReading(path));
  ALPHEUS_ASSIGN_OR_RETURN(RegionState state,
                           ReadState(region, ReadingMode::kExact));
  return std::unique_ptr<LogReader>(new LogReader(std::make_unique<Impl>(
      std::move(region), std::move(state), ReadingMode::kExact)));
}

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::OpenForSalvage(
    const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(Region opened, Region::OpenForReading(path));
  ALPHEUS_ASSIGN_OR_RETURN(Region region, PadIfTruncated(std::move(opened)));
  ALPHEUS_ASSIGN_OR_RETURN(RegionState state,
                           ReadState(region, ReadingMode::kSalvage));
  return std::unique_ptr<LogReader>(new LogReader(std::make_unique<Impl>(
      std::move(region), std::move(state), ReadingMode::kSalvage)));
}

absl::StatusOr<std::unique_ptr<LogReader>> LogReader::OpenImage(Region image) {
  ALPHEUS_ASSIGN_OR_RETURN(RegionState state,
                           ReadState(image, ReadingMode::kExact));
  return std::unique_ptr<LogReader>(new LogReader(std::make_unique<Impl>(
      std::move(image), std::move(state), ReadingMode::kExact)));
}

LogReader::LogReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LogReader::~LogReader() = default;

const RegionInfo& LogReader::info() const { return impl_->info(); }

absl::Status LogReader::ForEach(
    const std::function<absl::Status(const ReaderRecord&)>& visit) {
  return impl_->ForEach(Lsn(0), visit);
}

absl::Status LogReader::ForEachFrom(
    Lsn from, const std::function<absl::Status(const ReaderRecord&)>& visit) {
  return impl_->ForEach(from, visit);
}

absl::Status LogReader::ForEachSalvageable(
    const std::function<absl::Status(const ReaderRecord&)>& visit,
    const std::function<void(Lsn, Lsn)>& lost) {
  return impl_->ForEachSalvageable(visit, lost);
}

VerifyReport LogReader::Verify(const std::function<void(double)>& progress) {
  return impl_->Verify(progress);
}

}  // namespace alpheus
