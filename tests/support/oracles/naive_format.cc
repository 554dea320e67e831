// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/naive_format.h"

namespace alpheus::testing::naive {
namespace {

constexpr uint64_t kSuperlineContentOfVersion1 = 432;
constexpr uint64_t kSuperlineContentOfVersion2 = 704;
constexpr uint64_t kSuperlineContent = 712;
constexpr uint64_t kTableEntry = 40;
constexpr uint64_t kMembersMax = 16;
constexpr uint64_t kSealedHeader = 24;

// Letters as a number: the first one is the lowest byte.
uint64_t Letters(const char* text) {
  uint64_t value = 0;
  for (int i = 0; text[i] != '\0'; ++i) {
    value |= uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  return value;
}

std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      const bool carry = (crc & 1) != 0;
      crc >>= 1;
      if (carry) crc ^= 0x82f63b78u;  // Castagnoli, reflected
    }
    table[byte] = crc;
  }
  return table;
}

uint32_t LowHalf(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t HighHalf(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

// "" or what is wrong with the sizes.
std::string WrongGeometry(const Superline& s, uint64_t file_bytes) {
  constexpr uint64_t kRegionMax = uint64_t{1} << 44;
  constexpr uint64_t kEntriesMax = uint64_t{1} << 20;
  if (s.region_bytes > kRegionMax) return "region bytes";
  if (s.ring_capacity % kLine != 0 || s.ring_capacity < 4 * kLine ||
      s.ring_capacity > s.region_bytes) {
    return "ring capacity";
  }
  if (s.table_capacity < 1 || s.table_capacity > kEntriesMax) {
    return "table capacity";
  }
  if (s.ring_offset != TableOffset(s.table_capacity, 2)) return "ring offset";
  if (s.ring_offset + s.ring_capacity > s.region_bytes) return "ring's end";
  if (s.region_bytes > file_bytes) return "truncated";
  return "";
}

bool PositionIsPossible(uint64_t lsn, uint64_t offset) {
  return lsn >= 1 && lsn <= uint64_t{1} << 60 && offset <= uint64_t{1} << 62 &&
         offset % kLine == 0;
}

// "" or what contradicts itself.
std::string Contradiction(const Region& region, Mode mode) {
  constexpr uint64_t kNumberMax = uint64_t{1} << 62;
  const Superline& s = region.superline;
  if (!PositionIsPossible(s.head_lsn, s.head_offset)) return "head";
  if (s.promised_epoch > kNumberMax) return "promised epoch";
  if (s.log_epoch > s.promised_epoch) return "log epoch";
  if (s.ceiling < s.head_offset ||
      s.ceiling > s.head_offset + s.ring_capacity || s.ceiling % kLine != 0) {
    return "ceiling";
  }
  if (s.table_seq > kNumberMax) return "table seq";
  if (region.superline_seq > kNumberMax) return "superline seq";
  for (const EpochEntry& entry : region.table) {
    if (!PositionIsPossible(entry.start_lsn, entry.start_offset)) {
      return "start of an epoch";
    }
  }
  if (mode == Mode::kExact) {
    const uint64_t last = region.table.empty() ? 0 : region.table.back().epoch;
    if (last != s.log_epoch) return "last epoch of the table";
  }
  return "";
}

uint64_t ProvenLsn(const Region& region) {
  uint64_t proven = 0;
  for (const auto& watermark : region.watermarks) {
    if (watermark && watermark->epoch == region.superline.log_epoch &&
        watermark->lsn > proven) {
      proven = watermark->lsn;
    }
  }
  if (!region.table.empty() && region.table.back().start_lsn - 1 > proven) {
    proven = region.table.back().start_lsn - 1;
  }
  return proven;
}

// ---- Parts of a region: each fills in its part and says "" or what is wrong.

// The valid copy with the larger seq, copy 0 if they are equal.
std::string WrongSuperline(Bytes bytes, Region* region) {
  if (bytes.size() < kFixedBytes) return "shorter than its fixed part";
  std::optional<CellValue> newest;
  for (int copy = 0; copy < 2; ++copy) {
    auto value =
        ReadCopy(SuperlineCell(), copy,
                 bytes.subspan(SuperlineOffset(copy), kSuperlineCopyBytes));
    if (!value) {
      region->bad_copies.push_back("superline copy " + std::to_string(copy));
    } else if (!newest || value->seq > newest->seq) {
      newest = std::move(value);
    }
  }
  if (!newest) return "no superline";
  region->superline_seq = newest->seq;
  region->outcome = ReadSuperline(newest->content, &region->superline);
  if (region->outcome != Outcome::kGood) return "superline";
  return WrongGeometry(region->superline, bytes.size());
}

// The copy with the number that the superline names, copy 1 if both have it;
// salvage takes the newest if none has it.
std::string WrongTable(Bytes bytes, Mode mode, Region* region) {
  const Superline& s = region->superline;
  std::array<std::optional<CellValue>, 2> copies;
  int newest = -1;
  for (int copy = 0; copy < 2; ++copy) {
    copies[copy] = ReadCopy(TableCell(s.log_id), copy,
                            bytes.subspan(TableOffset(s.table_capacity, copy),
                                          TableCopyBytes(s.table_capacity)));
    if (!copies[copy]) {
      region->bad_copies.push_back("epoch table copy " + std::to_string(copy));
      continue;
    }
    const uint64_t seq = copies[copy]->seq;
    if (seq == s.table_seq) region->table_copy = copy;
    if (newest < 0 || seq > copies[newest]->seq) newest = copy;
  }
  if (region->table_copy < 0 && mode == Mode::kSalvage) {
    region->table_copy = newest;
  }
  if (region->table_copy < 0) return "no epoch table";
  const Outcome outcome =
      ReadTable(copies[region->table_copy]->content, &region->table);
  return outcome == Outcome::kGood ? "" : "epoch table";
}

std::string WrongWatermarks(Bytes bytes, Mode mode, Region* region) {
  bool found = false;
  for (int line = 0; line < 2; ++line) {
    region->watermarks[line] =
        ReadWatermark(region->superline.log_id, line,
                      bytes.subspan(WatermarkOffset(line), kLine));
    if (region->watermarks[line]) {
      found = true;
    } else {
      region->bad_copies.push_back("watermark line " + std::to_string(line));
    }
  }
  return found || mode == Mode::kSalvage ? "" : "no watermark";
}

}  // namespace

uint64_t LoadLittle(Bytes bytes, uint64_t offset, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; ++i) {
    value |= static_cast<uint64_t>(bytes[offset + static_cast<uint64_t>(i)])
             << (8 * i);
  }
  return value;
}

void StoreLittle(MutableBytes bytes, uint64_t offset, int width,
                 uint64_t value) {
  for (int i = 0; i < width; ++i) {
    bytes[offset + static_cast<uint64_t>(i)] =
        static_cast<std::byte>(value >> (8 * i));
  }
}

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

uint64_t Mix(uint64_t a, uint64_t b) { return Mix(Mix(a) ^ b); }

uint32_t Crc(uint32_t start, Bytes bytes) {
  static const std::array<uint32_t, 256> table = MakeCrcTable();
  uint32_t crc = start;
  for (const std::byte byte : bytes) {
    crc = (crc >> 8) ^ table[(crc ^ static_cast<uint32_t>(byte)) & 0xff];
  }
  return crc;
}

uint32_t CellCrc(const Cell& cell, int index, Bytes copy,
                 uint64_t content_bytes) {
  const uint64_t seed =
      Mix(Mix(cell.magic, cell.owner), static_cast<uint64_t>(index) + 1);
  const uint32_t crc = Crc(LowHalf(seed), copy.first(20));
  return Crc(crc, copy.subspan(kCellHeader, content_bytes));
}

std::optional<CellValue> ReadCopy(const Cell& cell, int index, Bytes copy) {
  const uint64_t content_bytes = LoadLittle(copy, 16, 4);
  CellValue value;
  value.seq = LoadLittle(copy, 8, 8);
  if (LoadLittle(copy, 0, 8) != cell.magic) return std::nullopt;
  if (value.seq == 0) return std::nullopt;
  if (content_bytes > copy.size() - kCellHeader) return std::nullopt;
  if (LoadLittle(copy, 20, 4) != CellCrc(cell, index, copy, content_bytes)) {
    return std::nullopt;
  }
  const Bytes content = copy.subspan(kCellHeader, content_bytes);
  value.content.assign(content.begin(), content.end());
  return value;
}

Cell SuperlineCell() { return {Letters("ALPHEUS1"), 0}; }

Cell TableCell(LogId log_id) {
  return {Letters("APHTABLE"), Mix(log_id.high, log_id.low)};
}

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kGood:
      return "good";
    case Outcome::kDamaged:
      return "damaged";
    case Outcome::kOtherVersion:
      return "other version";
  }
  return "unknown";
}

Outcome ReadSuperline(Bytes content, Superline* superline) {
  if (content.size() < 4) return Outcome::kDamaged;
  const uint64_t version = LoadLittle(content, 0, 4);
  if (version < 1 || version > 4) return Outcome::kOtherVersion;
  uint64_t expected = kSuperlineContent;
  if (version == 1) expected = kSuperlineContentOfVersion1;
  if (version == 2) expected = kSuperlineContentOfVersion2;
  if (content.size() != expected) return Outcome::kDamaged;
  Superline& s = *superline;
  const auto word = [content](uint64_t offset) {
    return LoadLittle(content, offset, 8);
  };
  s.flags = static_cast<uint32_t>(LoadLittle(content, 4, 4));
  if (version == 4) {
    s.deletion = s.flags / 2 % 4;
    if (s.deletion != 1 && s.deletion != 2) return Outcome::kDamaged;
  }
  s.cluster_id = {word(8), word(16)};
  s.log_id = {word(24), word(32)};
  s.node = word(40);
  s.incarnation = word(48);
  s.region_bytes = word(56);
  s.ring_offset = word(64);
  s.ring_capacity = word(72);
  s.table_capacity = word(80);
  s.promised_epoch = word(88);
  s.promised_node = word(96);
  s.promised_incarnation = word(104);
  s.log_epoch = word(112);
  s.table_seq = word(120);
  s.head_lsn = word(128);
  s.head_offset = word(136);
  s.head_chain = word(144);
  s.unsafe_shutdowns = word(152);
  s.ceiling = version >= 3 ? word(704) : s.head_offset + s.ring_capacity;
  s.configuration_id = word(160);
  s.replica_count = static_cast<uint32_t>(LoadLittle(content, 168, 4));
  s.write_quorum = static_cast<uint32_t>(LoadLittle(content, 172, 4));
  if (s.replica_count < 1 || s.replica_count > kMembersMax) {
    return Outcome::kDamaged;
  }
  if (s.write_quorum < 1 || s.write_quorum > s.replica_count) {
    return Outcome::kDamaged;
  }
  for (uint64_t i = 0; i < s.replica_count; ++i) {
    s.members.push_back({word(176 + 16 * i), word(184 + 16 * i)});
  }
  if (version == 1) return Outcome::kGood;
  s.from_replica_count = static_cast<uint32_t>(LoadLittle(content, 440, 4));
  if (s.from_replica_count == 0) return Outcome::kGood;
  s.from_id = word(432);
  s.from_write_quorum = static_cast<uint32_t>(LoadLittle(content, 444, 4));
  if (s.from_replica_count > kMembersMax || s.from_write_quorum < 1 ||
      s.from_write_quorum > s.from_replica_count) {
    return Outcome::kDamaged;
  }
  for (uint64_t i = 0; i < s.from_replica_count; ++i) {
    s.from_members.push_back({word(448 + 16 * i), word(456 + 16 * i)});
  }
  return Outcome::kGood;
}

Outcome ReadTable(Bytes content, EpochTable* table) {
  if (content.size() % kTableEntry != 0) return Outcome::kDamaged;
  for (uint64_t at = 0; at < content.size(); at += kTableEntry) {
    const EpochEntry entry = {
        LoadLittle(content, at, 8), LoadLittle(content, at + 8, 8),
        LoadLittle(content, at + 16, 8), LoadLittle(content, at + 24, 8),
        LoadLittle(content, at + 32, 8)};
    if (!table->empty()) {
      if (entry.epoch <= table->back().epoch) return Outcome::kDamaged;
      if (entry.start_lsn < table->back().start_lsn) return Outcome::kDamaged;
    }
    table->push_back(entry);
  }
  return Outcome::kGood;
}

const EpochEntry* OwnerOf(const EpochTable& table, uint64_t lsn) {
  const EpochEntry* owner = nullptr;
  for (const EpochEntry& entry : table) {
    if (entry.start_lsn <= lsn) owner = &entry;
  }
  return owner;
}

uint32_t WatermarkCrc(LogId log_id, int index, Bytes line) {
  const uint64_t seed =
      Mix(Mix(log_id.high, log_id.low), static_cast<uint64_t>(index) + 1);
  return Crc(LowHalf(seed), line.first(60));
}

std::optional<Watermark> ReadWatermark(LogId log_id, int index, Bytes line) {
  if (LoadLittle(line, 56, 4) != Letters("MARK")) return std::nullopt;
  if (LoadLittle(line, 60, 4) != WatermarkCrc(log_id, index, line)) {
    return std::nullopt;
  }
  return Watermark{LoadLittle(line, 0, 8), LoadLittle(line, 8, 8),
                   LoadLittle(line, 16, 8), LoadLittle(line, 24, 8)};
}

uint64_t CleanCloseWord(LogId log_id, uint64_t superline_seq) {
  return Mix(Mix(log_id.high, log_id.low), superline_seq) | 1;
}

void Reseal(uint64_t identity, MutableBytes place) {
  const uint64_t seed = Mix(Letters("APSEALED"), identity);
  const uint64_t data_bytes = LoadLittle(place, 8, 8);
  StoreLittle(place, 16, 4,
              Crc(HighHalf(seed), place.subspan(kSealedHeader, data_bytes)));
  StoreLittle(place, 20, 4, Crc(LowHalf(seed), place.first(20)));
}

std::optional<std::vector<std::byte>> ReadSealed(uint64_t identity,
                                                 Bytes place) {
  if (place.size() < kSealedHeader) return std::nullopt;
  const uint64_t seed = Mix(Letters("APSEALED"), identity);
  if (LoadLittle(place, 0, 8) != Letters("APSEALED")) return std::nullopt;
  if (LoadLittle(place, 20, 4) != Crc(LowHalf(seed), place.first(20))) {
    return std::nullopt;
  }
  const uint64_t data_bytes = LoadLittle(place, 8, 8);
  if (data_bytes > place.size() - kSealedHeader) return std::nullopt;
  const Bytes data = place.subspan(kSealedHeader, data_bytes);
  if (LoadLittle(place, 16, 4) != Crc(HighHalf(seed), data)) {
    return std::nullopt;
  }
  return std::vector<std::byte>(data.begin(), data.end());
}

uint64_t SuperlineOffset(int copy) { return copy == 0 ? 0 : 4096; }
uint64_t WatermarkOffset(int line) { return line == 0 ? 8192 : 12288; }

uint64_t TableCopyBytes(uint64_t table_capacity) {
  const uint64_t used = 24 + 40 * table_capacity;
  return (used + 4095) / 4096 * 4096;
}

uint64_t TableOffset(uint64_t table_capacity, int copy) {
  return kFixedBytes +
         static_cast<uint64_t>(copy) * TableCopyBytes(table_capacity);
}

Region ReadRegion(Bytes bytes, Mode mode) {
  Region region;
  region.why = WrongSuperline(bytes, &region);
  if (region.outcome == Outcome::kOtherVersion) return region;
  if (region.why.empty()) region.why = WrongTable(bytes, mode, &region);
  if (region.why.empty()) region.why = WrongWatermarks(bytes, mode, &region);
  if (region.why.empty()) region.why = Contradiction(region, mode);
  if (!region.why.empty()) {
    region.outcome = Outcome::kDamaged;
    return region;
  }
  region.proven_lsn = ProvenLsn(region);
  region.closed_cleanly =
      LoadLittle(bytes, kCleanCloseOffset, 8) ==
      CleanCloseWord(region.superline.log_id, region.superline_seq);
  region.outcome = Outcome::kGood;
  return region;
}

}  // namespace alpheus::testing::naive
