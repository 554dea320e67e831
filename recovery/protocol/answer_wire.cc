// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/answer_wire.h"

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/wire_parts.h"

namespace alpheus {
namespace {

// On the wire, never renumber.
constexpr uint32_t kAnswerMagic = 0x4e415041;  // "APAN" in memory

constexpr uint32_t kBlank = 1;
constexpr uint32_t kSuspect = 2;
constexpr uint32_t kRepairing = 4;

constexpr size_t kRunBytes = 16;
constexpr size_t kHeldBytes = 24;

uint64_t LinesOf(const Answer& answer) {
  return answer.ring_capacity / kLineBytes;
}

// Reads runs, and checks AN1 and that they name no more LSNs than the ring has
// lines.
std::vector<VerdictRun> TakeRuns(ByteReader& from, const Answer& answer) {
  std::vector<VerdictRun> runs;
  const uint64_t count = from.U64();
  if (!from.Holds(count, kRunBytes)) return runs;
  runs.reserve(count);
  Lsn next = answer.head.lsn;
  size_t held = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t verdict = from.U64();
    const uint64_t lsns = from.U64();
    const uint64_t said = next - answer.head.lsn;
    if (!from.Expect(verdict <= static_cast<uint64_t>(Verdict::kUnknown) &&
                     lsns >= 1 && lsns <= LinesOf(answer) - said)) {
      return {};
    }
    const auto as_verdict = static_cast<Verdict>(verdict);
    runs.push_back({next, next + lsns, as_verdict, held});
    next = next + lsns;
    if (as_verdict == Verdict::kHave) held += lsns;
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

std::vector<HeldRecord> TakeHeld(ByteReader& from, const Answer& answer) {
  std::vector<HeldRecord> held;
  const uint64_t count = from.U64();
  if (!from.Expect(count == RecordsIn(answer.runs)) ||
      !from.Holds(count, kHeldBytes)) {
    return held;
  }
  held.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    HeldRecord record;
    record.epoch = from.As<Epoch>();
    record.offset = from.As<RingOffset>();
    record.header_checksum = from.U32();
    record.lines = from.U32();
    held.push_back(record);
  }
  return held;
}

// Checks that records follow each other within one lap from the head, and that
// each record's epoch owns its LSN (ET2).
bool AreHeldGood(const Answer& answer) {
  const RingOffset limit = answer.head.offset + answer.ring_capacity;
  RingOffset free = answer.head.offset;
  for (const VerdictRun& run : answer.runs) {
    if (run.verdict != Verdict::kHave) continue;
    for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
      const HeldRecord& record = answer.held[run.held + (lsn - run.first)];
      const EpochEntry* const owner = answer.table.Owner(lsn);
      const bool fits =
          record.lines > 0 && record.offset.value % kLineBytes == 0 &&
          record.offset >= free && record.offset < limit &&
          uint64_t{record.lines} * kLineBytes <= limit - record.offset;
      if (!fits || owner == nullptr || owner->epoch != record.epoch) {
        return false;
      }
      free = record.offset + uint64_t{record.lines} * kLineBytes;
    }
  }
  return true;
}

}  // namespace

uint64_t AnswerBytesMax(uint64_t ring_capacity) {
  const uint64_t lines = ring_capacity / kLineBytes;
  return kMessageBytesMax + lines * (kRunBytes + kHeldBytes);
}

std::vector<std::byte> EncodeAnswer(Uuid log_id, const Answer& answer) {
  ByteWriter to;
  to.Reserve(kMessageBytesMax + answer.runs.size() * kRunBytes +
             answer.held.size() * kHeldBytes);
  to.U32(kAnswerMagic);
  to.U32(kProtocolVersion);
  to.Id(answer.node);
  to.U64(answer.incarnation);
  Put(to, answer.configuration);
  to.U64(answer.ring_capacity);
  to.Id(answer.log_epoch);
  to.Id(answer.promised_before);
  Put(to, answer.head);
  to.Id(answer.proven_lsn);
  to.U32((answer.blank ? kBlank : 0) | (answer.suspect ? kSuspect : 0) |
         (answer.repairing ? kRepairing : 0));
  Put(to, answer.table);
  to.U64(answer.runs.size());
  for (const VerdictRun& run : answer.runs) {
    to.U64(static_cast<uint64_t>(run.verdict));
    to.U64(run.end - run.first);
  }
  to.U64(answer.held.size());
  for (const HeldRecord& record : answer.held) {
    to.Id(record.epoch);
    to.Id(record.offset);
    to.U32(record.header_checksum);
    to.U32(record.lines);
  }
  PutSum(to, kAnswerMagic, log_id);
  return to.Take();
}

absl::StatusOr<Answer> DecodeAnswer(Uuid log_id,
                                    std::span<const std::byte> bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::span<const std::byte> summed,
      TakeSummed("an answer", kAnswerMagic, log_id, bytes));
  const absl::Status none = absl::DataLossError(
      absl::StrCat(bytes.size(), " bytes came that are no answer"));
  ByteReader from(summed);
  from.Expect(from.U32() == kAnswerMagic);
  from.Expect(from.U32() == kProtocolVersion);
  Answer answer;
  answer.node = from.As<NodeId>();
  answer.incarnation = from.U64();
  answer.configuration = TakeConfiguration(from);
  answer.ring_capacity = from.U64();
  from.Expect(answer.ring_capacity <= kOffsetEnd &&
              answer.ring_capacity % kLineBytes == 0);
  answer.log_epoch = from.As<Epoch>();
  answer.promised_before = from.As<Epoch>();
  answer.head = TakePosition(from);
  answer.proven_lsn = from.As<Lsn>();
  const uint32_t flags = from.U32();
  from.Expect(flags <= (kBlank | kSuspect | kRepairing));
  answer.blank = (flags & kBlank) != 0;
  answer.suspect = (flags & kSuspect) != 0;
  answer.repairing = (flags & kRepairing) != 0;
  answer.table = TakeTable(from, log_id);
  // So that sums of LSNs never overflow.
  if (!from.Expect(answer.head.lsn.value < kOffsetEnd &&
                   answer.proven_lsn < answer.head.lsn + LinesOf(answer))) {
    return none;
  }
  answer.runs = TakeRuns(from, answer);
  if (!from.good()) return none;
  answer.held = TakeHeld(from, answer);
  if (!from.IsDone() || !AreHeldGood(answer)) return none;
  return answer;
}

}  // namespace alpheus
