// SPDX-License-Identifier: Apache-2.0
// naive_scan: a second scanner, for fuzzers to hold ScanLog against.
//
// Idea: as naive_format.h: written from docs/formats/log.md#scan alone, slow
// and obvious. It copies each record out and looks at every line again
// whenever it is asked.
//
// Thread safety: pure functions.
// References: docs/formats/log.md#record, #scan.
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_SCAN_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/oracles/naive_format.h"

namespace alpheus::testing::naive {

inline constexpr uint64_t kRecordHeader = 48;

struct Position {
  uint64_t lsn = 1;
  uint64_t offset = 0;
  uint64_t chain = 0;

  bool operator==(const Position&) const = default;
};

// The input of a scan. `ring` is the whole ring.
struct ScanTask {
  Bytes ring;
  LogId log_id;
  EpochTable table;
  Position head;
  uint64_t proven_lsn = 0;
};

struct Record {
  uint64_t lsn = 0;
  uint64_t epoch = 0;
  uint64_t durable_lsn = 0;
  uint64_t offset = 0;  // of its header
  uint64_t seed = 0;
  uint64_t type = 0;
  uint64_t header_crc = 0;
  uint64_t payload_bytes = 0;  // as the header has it
  bool cleaned = false;
  std::vector<std::byte> payload;  // empty if aborted
};

struct ScanOutcome {
  Position end;
  std::string verdict;  // "complete", "torn" or "corrupt"
  std::vector<Record> records;
  uint64_t data_records = 0;
  uint64_t cleaned_records = 0;
  uint64_t aborted_records = 0;
  uint64_t payload_bytes = 0;
  // LSN of the record behind it, and its offset.
  std::vector<std::pair<uint64_t, uint64_t>> damaged_pads;
  uint64_t proven_lsn = 0;
  uint64_t named_durable_lsn = 0;  // by headers
  bool bad_payload = false;
  uint64_t bad_bytes = 0;
  uint64_t cut_records = 0;
  uint64_t cut_last_lsn = 0;
};

ScanOutcome Scan(const ScanTask& task);

// The record of `lsn` at `offset`, if its header holds and it fits.
std::optional<Record> RecordAt(const ScanTask& task, uint64_t lsn,
                               uint64_t offset);
bool PayloadHolds(const ScanTask& task, const Record& record);

// The first line from `from` on with a record of an LSN above `from.lsn`.
std::optional<Record> FirstBehind(const ScanTask& task, const Position& from);

ScanTask TaskOf(const Region& region, Bytes bytes);

// The seed of the checksums of `lsn` at `offset`.
uint64_t RecordSeed(LogId log_id, const EpochEntry& owner, uint64_t lsn,
                    uint64_t offset);
uint64_t CleanedWord(uint64_t seed);
// Stores the checksum of the payload, if it has one and it fits `line`'s room,
// then that of the header. `record` starts at the header and ends where the
// ring does. `seal_payload` false: only the header's.
void ResealRecord(uint64_t seed, MutableBytes record, bool seal_payload);

}  // namespace alpheus::testing::naive

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_SCAN_H_
