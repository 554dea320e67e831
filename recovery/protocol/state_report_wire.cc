// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/state_report_wire.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/wire_parts.h"

namespace alpheus::recovery {
namespace {

// On the wire, never renumber.
constexpr uint32_t kStateReportMagic = 0x4e415041;  // "APAN" in memory

constexpr uint32_t kBlank = 1;
constexpr uint32_t kSuspect = 2;
constexpr uint32_t kRepairing = 4;

constexpr size_t kRunBytes = 16;
constexpr size_t kRecordBytes = 24;

uint64_t LinesOf(const StateReport& report) {
  return report.ring_capacity / kLineBytes;
}

// Reads runs, and checks STR1 and that they name no more LSNs than the ring has
// lines.
std::vector<VerdictRun> ReadRuns(ByteReader& from, const StateReport& report) {
  std::vector<VerdictRun> runs;
  const uint64_t count = from.U64();
  if (!from.Holds(count, kRunBytes)) return runs;
  runs.reserve(count);
  Lsn next = report.start().lsn;
  size_t records = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t verdict = from.U64();
    const uint64_t lsns = from.U64();
    const uint64_t said = next - report.head.lsn;
    if (!from.Expect(verdict <= static_cast<uint64_t>(Verdict::kUnknown) &&
                     lsns >= 1 && lsns <= LinesOf(report) - said)) {
      return {};
    }
    const auto as_verdict = static_cast<Verdict>(verdict);
    runs.push_back({next, next + lsns, as_verdict, records});
    next = next + lsns;
    if (as_verdict == Verdict::kHave) records += lsns;
  }
  return runs;
}

uint64_t RecordsIn(const std::vector<VerdictRun>& runs) {
  uint64_t records = 0;
  for (const VerdictRun& run : runs) {
    if (run.verdict == Verdict::kHave) records += run.end - run.first;
  }
  return records;
}

std::vector<ReportedRecord> ReadRecords(ByteReader& from,
                                        const StateReport& report) {
  std::vector<ReportedRecord> records;
  const uint64_t count = from.U64();
  if (!from.Expect(count == RecordsIn(report.runs)) ||
      !from.Holds(count, kRecordBytes)) {
    return records;
  }
  records.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    ReportedRecord record;
    record.epoch = from.As<Epoch>();
    record.offset = from.As<RingOffset>();
    record.header_checksum = from.U32();
    record.lines = from.U32();
    records.push_back(record);
  }
  return records;
}

// An opening copies the bytes of a record as they lie: across the end of the
// ring it would read and write what lies behind it.
bool CrossesTheEnd(const ReportedRecord& record, uint64_t ring_capacity) {
  const uint64_t left = ring_capacity - record.offset.value % ring_capacity;
  return record.lines > left / kLineBytes;
}

// Reads the place where the runs begin: the head, or that of a proven record a
// lap after it at most, with a line for each record before it, each of which
// has an owner.
std::optional<LogPosition> ReadPlace(ByteReader& from,
                                     const StateReport& report) {
  const LogPosition place = ReadPosition(from);
  if (place == report.head) return std::nullopt;
  const LogPosition& head = report.head;
  from.Expect(place.lsn > head.lsn && place.offset > head.offset &&
              place.offset.value % kLineBytes == 0 &&
              place.offset - head.offset <= report.ring_capacity &&
              place.lsn - head.lsn <=
                  (place.offset - head.offset) / kLineBytes &&
              place.lsn <= report.proven_lsn &&
              report.table.Owner(head.lsn) != nullptr && report.knows());
  return place;
}

// Checks that records follow each other within one lap from the head, that none
// crosses the end of the ring, and that each record's epoch owns its LSN (ET2).
bool AreRecordsGood(const StateReport& report) {
  const RingOffset limit = report.head.offset + report.ring_capacity;
  RingOffset free = report.start().offset;
  for (const VerdictRun& run : report.runs) {
    if (run.verdict != Verdict::kHave) continue;
    for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
      const ReportedRecord& record =
          report.records[run.first_record + (lsn - run.first)];
      const EpochEntry* const owner = report.table.Owner(lsn);
      const bool fits =
          record.lines > 0 && record.offset.value % kLineBytes == 0 &&
          record.offset >= free && record.offset < limit &&
          uint64_t{record.lines} * kLineBytes <= limit - record.offset &&
          !CrossesTheEnd(record, report.ring_capacity);
      if (!fits || owner == nullptr || owner->epoch != record.epoch) {
        return false;
      }
      free = record.offset + uint64_t{record.lines} * kLineBytes;
    }
  }
  return true;
}

}  // namespace

uint64_t StateReportBytesMax(uint64_t ring_capacity) {
  const uint64_t lines = ring_capacity / kLineBytes;
  return kMessageBytesMax + lines * (kRunBytes + kRecordBytes);
}

std::vector<std::byte> EncodeStateReport(Uuid log_id,
                                         const StateReport& report) {
  ByteWriter to;
  to.Reserve(kMessageBytesMax + report.runs.size() * kRunBytes +
             report.records.size() * kRecordBytes);
  to.U32(kStateReportMagic);
  to.U32(kProtocolVersion);
  to.Id(report.node);
  to.U64(report.incarnation);
  Put(to, report.configuration);
  to.U64(report.ring_capacity);
  to.Id(report.log_epoch);
  to.Id(report.promised_before);
  Put(to, report.head);
  to.Id(report.proven_lsn);
  to.U32((report.blank ? kBlank : 0) | (report.suspect ? kSuspect : 0) |
         (report.repairing ? kRepairing : 0));
  Put(to, report.table);
  Put(to, report.start());
  to.U64(report.runs.size());
  for (const VerdictRun& run : report.runs) {
    to.U64(static_cast<uint64_t>(run.verdict));
    to.U64(run.end - run.first);
  }
  to.U64(report.records.size());
  for (const ReportedRecord& record : report.records) {
    to.Id(record.epoch);
    to.Id(record.offset);
    to.U32(record.header_checksum);
    to.U32(record.lines);
  }
  PutSum(to, kStateReportMagic, log_id);
  return to.Take();
}

absl::StatusOr<StateReport> DecodeStateReport(
    Uuid log_id, std::span<const std::byte> bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::span<const std::byte> summed,
      ReadSummed("a state report", kStateReportMagic, log_id, bytes));
  const absl::Status none = absl::DataLossError(
      absl::StrCat(bytes.size(), " bytes came that are not a state report"));
  ByteReader from(summed);
  from.Expect(from.U32() == kStateReportMagic);
  from.Expect(from.U32() == kProtocolVersion);
  StateReport report;
  report.node = from.As<NodeId>();
  report.incarnation = from.U64();
  report.configuration = ReadConfiguration(from);
  report.ring_capacity = from.U64();
  from.Expect(report.ring_capacity <= kOffsetEnd &&
              report.ring_capacity % kLineBytes == 0);
  report.log_epoch = from.As<Epoch>();
  report.promised_before = from.As<Epoch>();
  report.head = ReadPosition(from);
  report.proven_lsn = from.As<Lsn>();
  const uint32_t flags = from.U32();
  from.Expect(flags <= (kBlank | kSuspect | kRepairing));
  report.blank = (flags & kBlank) != 0;
  report.suspect = (flags & kSuspect) != 0;
  report.repairing = (flags & kRepairing) != 0;
  report.table = ReadTable(from, log_id);
  // So that sums of LSNs never overflow.
  if (!from.Expect(report.head.lsn.value < kOffsetEnd &&
                   report.proven_lsn < report.head.lsn + LinesOf(report))) {
    return none;
  }
  report.place = ReadPlace(from, report);
  if (!from.good()) return none;
  report.runs = ReadRuns(from, report);
  if (!from.good()) return none;
  report.records = ReadRecords(from, report);
  if (!from.IsDone() || !AreRecordsGood(report)) return none;
  return report;
}

}  // namespace alpheus::recovery
