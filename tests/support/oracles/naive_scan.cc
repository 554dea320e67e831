// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/naive_scan.h"

namespace alpheus::testing::naive {
namespace {

constexpr uint64_t kMagic = 0xa1f5;
constexpr uint64_t kData = 1;
constexpr uint64_t kPad = 2;
constexpr uint64_t kAborted = 3;
constexpr uint32_t kAllOnes = 0xffffffffu;

uint64_t LimitOf(const ScanTask& task) {
  return task.head.offset + task.ring.size();
}

Bytes At(const ScanTask& task, uint64_t offset) {
  return task.ring.subspan(offset % task.ring.size());
}

uint32_t HeaderCrc(uint64_t seed, Bytes header) {
  return Crc(kAllOnes, header.first(36)) ^ static_cast<uint32_t>(seed);
}

uint32_t PayloadCrc(uint64_t seed, Bytes payload) {
  return Crc(kAllOnes, payload) ^ static_cast<uint32_t>(seed >> 32);
}

// Header of `lsn` at `offset`, PADs included, whatever its length.
std::optional<Record> HeaderAt(const ScanTask& task, uint64_t lsn,
                               uint64_t offset) {
  if (offset + kLine > LimitOf(task)) return std::nullopt;
  const Bytes header = At(task, offset);
  if (lsn == 0 || LoadLittle(header, 0, 8) != lsn) return std::nullopt;
  const EpochEntry* owner = OwnerOf(task.table, lsn);
  if (owner == nullptr) return std::nullopt;
  Record record;
  record.lsn = lsn;
  record.epoch = LoadLittle(header, 8, 8);
  record.durable_lsn = LoadLittle(header, 16, 8);
  record.payload_bytes = LoadLittle(header, 24, 4);
  record.type = LoadLittle(header, 30, 1);
  record.header_crc = LoadLittle(header, 36, 4);
  record.offset = offset;
  record.seed = RecordSeed(task.log_id, *owner, lsn, offset);
  record.cleaned = LoadLittle(header, 40, 8) == CleanedWord(record.seed);
  if (record.epoch != owner->epoch) return std::nullopt;
  if (LoadLittle(header, 28, 2) != kMagic) return std::nullopt;
  if (record.type < kData || record.type > kAborted) return std::nullopt;
  if (record.header_crc != HeaderCrc(record.seed, header)) return std::nullopt;
  return record;
}

uint64_t WholeLines(uint64_t payload_bytes) {
  return (kRecordHeader + payload_bytes + kLine - 1) / kLine * kLine;
}

bool LooksTorn(const ScanTask& task, const Position& end) {
  if (end.offset + kLine > LimitOf(task)) return false;
  const EpochEntry* owner = OwnerOf(task.table, end.lsn);
  return owner != nullptr &&
         LoadLittle(At(task, end.offset), 0, 8) == end.lsn &&
         LoadLittle(At(task, end.offset), 8, 8) == owner->epoch;
}

void Note(const Record& record, ScanOutcome* outcome) {
  if (record.cleaned) {
    ++outcome->cleaned_records;
  } else if (record.type == kAborted) {
    ++outcome->aborted_records;
  } else {
    ++outcome->data_records;
    outcome->payload_bytes += record.payload_bytes;
  }
  outcome->records.push_back(record);
}

void Raise(uint64_t* proven, uint64_t lsn) {
  if (lsn > *proven) *proven = lsn;
}

}  // namespace

uint64_t RecordSeed(LogId log_id, const EpochEntry& owner, uint64_t lsn,
                    uint64_t offset) {
  const uint64_t key =
      Mix(Mix(Mix(log_id.high, log_id.low), owner.epoch), owner.nonce);
  return Mix(key ^ (lsn * 0xd6e8feb86659fd93u) ^ offset);
}

uint64_t CleanedWord(uint64_t seed) {
  uint64_t tag = 0;
  for (const char letter : {'c', 'l', 'e', 'a', 'n', 'e', 'd', '!'}) {
    tag = tag << 8 | static_cast<unsigned char>(letter);
  }
  return Mix(seed, tag) | 1;
}

std::optional<Record> RecordAt(const ScanTask& task, uint64_t lsn,
                               uint64_t offset) {
  std::optional<Record> record = HeaderAt(task, lsn, offset);
  if (!record || record->type == kPad) return std::nullopt;
  const uint64_t bytes = WholeLines(record->payload_bytes);
  if (bytes > At(task, offset).size()) return std::nullopt;
  if (offset + bytes > LimitOf(task)) return std::nullopt;
  if (record->type == kData) {
    const Bytes payload =
        At(task, offset).subspan(kRecordHeader, record->payload_bytes);
    record->payload.assign(payload.begin(), payload.end());
  }
  return record;
}

bool PayloadHolds(const ScanTask& task, const Record& record) {
  if (record.type != kData) return true;
  return LoadLittle(At(task, record.offset), 32, 4) ==
         PayloadCrc(record.seed, record.payload);
}

std::optional<Record> FirstBehind(const ScanTask& task, const Position& from) {
  for (uint64_t at = from.offset; at + kLine <= LimitOf(task); at += kLine) {
    const uint64_t lsn = LoadLittle(At(task, at), 0, 8);
    if (lsn <= from.lsn) continue;
    if (auto record = RecordAt(task, lsn, at)) return record;
  }
  return std::nullopt;
}

ScanOutcome Scan(const ScanTask& task) {
  ScanOutcome outcome;
  outcome.proven_lsn = task.proven_lsn;
  Position& at = outcome.end;
  at = task.head;
  for (;;) {
    std::optional<Record> record = RecordAt(task, at.lsn, at.offset);
    bool pad_is_bad = false;
    if (!record && at.offset % task.ring.size() != 0) {
      const uint64_t ring_start =
          (at.offset / task.ring.size() + 1) * task.ring.size();
      record = RecordAt(task, at.lsn, ring_start);
      if (record) {
        const auto pad = HeaderAt(task, at.lsn, at.offset);
        pad_is_bad = !pad || pad->type != kPad;
      }
    }
    if (!record) break;
    Raise(&outcome.named_durable_lsn, record->durable_lsn);
    if (!record->cleaned && !PayloadHolds(task, *record)) {
      outcome.bad_payload = true;
      outcome.bad_bytes = WholeLines(record->payload_bytes);
      break;
    }
    if (pad_is_bad) outcome.damaged_pads.emplace_back(at.lsn, at.offset);
    Note(*record, &outcome);
    at.lsn += 1;
    at.offset = record->offset + WholeLines(record->payload_bytes);
    at.chain = Mix(at.chain ^ record->header_crc);
  }
  Position from = at;
  while (auto later = FirstBehind(task, from)) {
    ++outcome.cut_records;
    if (later->lsn > outcome.cut_last_lsn) outcome.cut_last_lsn = later->lsn;
    Raise(&outcome.named_durable_lsn, later->durable_lsn);
    from.offset = later->offset + kLine;
  }
  Raise(&outcome.proven_lsn, outcome.named_durable_lsn);
  if (at.lsn <= outcome.proven_lsn) {
    outcome.verdict = "corrupt";
  } else if (outcome.bad_payload || outcome.cut_records > 0 ||
             LooksTorn(task, at)) {
    outcome.verdict = "torn";
  } else {
    outcome.verdict = "complete";
  }
  return outcome;
}

ScanTask TaskOf(const Region& region, Bytes bytes) {
  const Superline& s = region.superline;
  ScanTask task;
  task.ring = bytes.subspan(s.ring_offset, s.ring_capacity);
  task.log_id = s.log_id;
  task.table = region.table;
  task.head = {s.head_lsn, s.head_offset, s.head_chain};
  task.proven_lsn = region.proven_lsn;
  return task;
}

void ResealRecord(uint64_t seed, MutableBytes record, bool seal_payload) {
  if (seal_payload) {
    const uint64_t bytes = LoadLittle(record, 24, 4);
    const bool has_payload = LoadLittle(record, 30, 1) == kData &&
                             bytes <= record.size() - kRecordHeader;
    if (has_payload) {
      StoreLittle(record, 32, 4,
                  PayloadCrc(seed, record.subspan(kRecordHeader, bytes)));
    }
  }
  StoreLittle(record, 36, 4, HeaderCrc(seed, record));
}

}  // namespace alpheus::testing::naive
