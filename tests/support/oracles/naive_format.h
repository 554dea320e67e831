// SPDX-License-Identifier: Apache-2.0
// naive_format: a second reading of the log format, for fuzzers to hold the
// production decoders against.
//
// Idea: written from docs/formats/log.md alone. It shares no line with log/ and
// includes nothing of it: fields are put together byte by byte at the offsets
// that the document names, the CRC goes bit by bit into a table of its own.
// Slow, obvious, and wrong in other places than the production code.
//
// Where the two differ, one of them or the document is wrong.
// Thread safety: pure functions.
// References: docs/formats/log.md.
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_FORMAT_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_FORMAT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace alpheus::testing::naive {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// Little-endian fields. Requires: they lie in `bytes`.
uint64_t LoadLittle(Bytes bytes, uint64_t offset, int width);
void StoreLittle(MutableBytes bytes, uint64_t offset, int width,
                 uint64_t value);

uint64_t Mix(uint64_t x);
uint64_t Mix(uint64_t a, uint64_t b);
// CRC32C from `start`, without the final inversion.
uint32_t Crc(uint32_t start, Bytes bytes);

struct LogId {
  uint64_t high = 0;
  uint64_t low = 0;

  bool operator==(const LogId&) const = default;
};

// ---- Cell

inline constexpr uint64_t kCellHeader = 24;

struct Cell {
  uint64_t magic = 0;
  uint64_t owner = 0;
};

struct CellValue {
  uint64_t seq = 0;
  std::vector<std::byte> content;
};

// The checksum that a copy with these bytes must carry. Requires: header and
// content lie in `copy`.
uint32_t CellCrc(const Cell& cell, int index, Bytes copy,
                 uint64_t content_bytes);
// The value of copy `index`, which has the room of `copy`.
std::optional<CellValue> ReadCopy(const Cell& cell, int index, Bytes copy);

Cell SuperlineCell();
Cell TableCell(LogId log_id);

// ---- Superline

struct Member {
  uint64_t node = 0;
  uint64_t incarnation = 0;

  bool operator==(const Member&) const = default;
};

struct Superline {
  uint32_t flags = 0;
  LogId cluster_id;
  LogId log_id;
  uint64_t node = 0;
  uint64_t incarnation = 0;
  uint64_t region_bytes = 0;
  uint64_t ring_offset = 0;
  uint64_t ring_capacity = 0;
  uint64_t table_capacity = 0;
  uint64_t promised_epoch = 0;
  uint64_t promised_node = 0;
  uint64_t promised_incarnation = 0;
  uint64_t log_epoch = 0;
  uint64_t table_seq = 0;
  uint64_t head_lsn = 0;
  uint64_t head_offset = 0;
  uint64_t head_chain = 0;
  uint64_t unsafe_shutdowns = 0;
  uint64_t configuration_id = 0;
  uint32_t replica_count = 0;
  uint32_t write_quorum = 0;
  std::vector<Member> members;
  uint64_t from_id = 0;  // with those below: what it was made from; or zeros
  uint32_t from_replica_count = 0;
  uint32_t from_write_quorum = 0;
  std::vector<Member> from_members;
  uint64_t ceiling = 0;
  uint32_t deletion = 0;  // 1 marked, 2 decided
};

enum class Outcome {
  kGood,
  kDamaged,       // production: DataLoss
  kOtherVersion,  // production: Unimplemented
};
const char* OutcomeName(Outcome outcome);

Outcome ReadSuperline(Bytes content, Superline* superline);

// ---- Epoch table

struct EpochEntry {
  uint64_t epoch = 0;
  uint64_t nonce = 0;
  uint64_t start_lsn = 0;
  uint64_t start_offset = 0;
  uint64_t start_chain = 0;

  bool operator==(const EpochEntry&) const = default;
};
using EpochTable = std::vector<EpochEntry>;

Outcome ReadTable(Bytes content, EpochTable* table);
// The entry that owns `lsn`, or null.
const EpochEntry* OwnerOf(const EpochTable& table, uint64_t lsn);

// ---- Watermark, clean-close word

struct Watermark {
  uint64_t epoch = 0;
  uint64_t lsn = 0;
  uint64_t offset = 0;
  uint64_t chain = 0;

  bool operator==(const Watermark&) const = default;
};

inline constexpr uint64_t kLine = 64;

uint32_t WatermarkCrc(LogId log_id, int index, Bytes line);
std::optional<Watermark> ReadWatermark(LogId log_id, int index, Bytes line);
uint64_t CleanCloseWord(LogId log_id, uint64_t superline_seq);

// ---- Sealed bytes

std::optional<std::vector<std::byte>> ReadSealed(uint64_t identity,
                                                 Bytes place);
// The checksums of header and data; data_bytes of the header is used.
// Requires: header and data lie in `place`.
void Reseal(uint64_t identity, MutableBytes place);

// ---- Region

enum class Mode { kExact, kSalvage };

struct Region {
  Outcome outcome = Outcome::kDamaged;
  std::string why;  // not good

  Superline superline;
  uint64_t superline_seq = 0;
  EpochTable table;
  int table_copy = -1;
  std::array<std::optional<Watermark>, 2> watermarks;
  uint64_t proven_lsn = 0;
  bool closed_cleanly = false;
  // "superline copy 1", "epoch table copy 0", "watermark line 1": in this
  // order, those that can't be read.
  std::vector<std::string> bad_copies;
};

Region ReadRegion(Bytes bytes, Mode mode);

// Where the fixed parts lie; copy or line 0 or 1.
uint64_t SuperlineOffset(int copy);
uint64_t WatermarkOffset(int line);
uint64_t TableCopyBytes(uint64_t table_capacity);
uint64_t TableOffset(uint64_t table_capacity, int copy);
inline constexpr uint64_t kSuperlineCopyBytes = 4096;
inline constexpr uint64_t kFixedBytes = 16384;
inline constexpr uint64_t kCleanCloseOffset = 8256;

}  // namespace alpheus::testing::naive

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_FORMAT_H_
