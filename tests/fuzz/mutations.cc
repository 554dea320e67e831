// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutations.h"

#include <algorithm>
#include <span>

#include "log/base/bytes.h"
#include "tests/support/oracles/naive_format.h"
#include "tests/support/oracles/naive_scan.h"

namespace alpheus::testing {
namespace {

using naive::LoadLittle;
using naive::StoreLittle;

// A field of a structure: offset and width.
struct Field {
  uint64_t offset;
  int width;
};

constexpr Field kRecordFields[] = {{0, 8},  {8, 8},  {16, 8}, {24, 4}, {28, 2},
                                   {30, 1}, {31, 1}, {32, 4}, {40, 8}};
constexpr Field kWatermarkFields[] = {{0, 8},  {8, 8},  {16, 8},
                                      {24, 8}, {32, 8}, {56, 4}};
constexpr uint64_t kEntryBytes = 40;
constexpr uint64_t kSuperlineWords = 712 / 8;

class Mutator {
 public:
  Mutator(FuzzInput& input, TinyImage* image) : input_(input), image_(*image) {}

  void One(MutationTarget target) {
    switch (target) {
      case MutationTarget::kAnything:
        return Anything();
      case MutationTarget::kSuperline:
        return Superline();
      case MutationTarget::kEpochTable:
        return input_.Below(8) == 0 ? Superline() : EpochTable();
      case MutationTarget::kWatermark:
        return input_.Below(8) == 0 ? Superline() : Watermark();
    }
  }

 private:
  // Read when it is needed, after all changes before.
  const naive::Region& region() {
    Look();
    return region_;
  }
  const naive::ScanTask& task() {
    Look();
    return task_;
  }
  void Look() {
    if (!stale_) return;
    stale_ = false;
    naive::Region found =
        naive::ReadRegion(image_.bytes, naive::Mode::kSalvage);
    if (found.outcome == naive::Outcome::kGood) {
      region_ = std::move(found);
      task_ = naive::TaskOf(region_, image_.bytes);
    } else if (region_.superline.ring_offset + task_.ring.size() >
               image_.bytes.size()) {
      task_.ring = {};  // cut off
    }
  }

  std::span<std::byte> bytes() { return image_.bytes; }
  bool has_ring() {
    return task().ring.size() >= kLineBytes &&
           region().superline.ring_offset + task().ring.size() <=
               image_.bytes.size();
  }
  std::span<std::byte> ring() {
    return bytes().subspan(region().superline.ring_offset, task().ring.size());
  }
  uint64_t ring_lines() { return task().ring.size() / kLineBytes; }
  std::span<std::byte> RingLine() {
    return ring().subspan(input_.Below(ring_lines()) * kLineBytes, kLineBytes);
  }

  void Anything() {
    const uint64_t choice = input_.Below(32);
    if (choice < 20 && has_ring()) return InRing(choice);
    switch (choice) {
      case 20:
      case 21:
        return Superline();
      case 22:
      case 23:
        return EpochTable();
      case 24:
      case 25:
        return Watermark();
      case 26:
        return CleanClose();
      case 27:
        return FlipBit(bytes());
      case 28:
        return Resize();
      default:
        return FromEarlier();
    }
  }

  void InRing(uint64_t choice) {
    switch (choice) {
      case 0:
        return input_.Flag() ? DamagePad() : FlipBit(ring());
      case 1:
        return FillLine();
      case 2:
        return SwapLines();
      case 3:
        return CopyLine();
      case 4:
      case 5:
        return TearLine();
      case 6:
      case 7:
      case 8:
        return PayloadByte();
      case 9:
      case 10:
        return Cleaned();
      case 11:
      case 12:
      case 13:
        return Forge();
      default:
        return RecordField();
    }
  }

  void FlipBit(std::span<std::byte> where) {
    if (where.empty()) return;
    where[input_.Below(where.size())] ^=
        static_cast<std::byte>(1u << input_.Below(8));
  }

  void DamagePad() {
    for (uint64_t line = 0; line < ring_lines(); ++line) {
      const uint64_t at = line * kLineBytes;
      if (LoadLittle(ring(), at + 28, 2) != 0xa1f5) continue;
      if (LoadLittle(ring(), at + 30, 1) != 2) continue;
      return FlipBit(ring().subspan(at, 40));
    }
  }

  void FillLine() {
    std::ranges::fill(RingLine(), static_cast<std::byte>(input_.Byte()));
  }

  void SwapLines() {
    const std::span<std::byte> a = RingLine();
    const std::span<std::byte> b = RingLine();
    if (a.data() != b.data()) std::ranges::swap_ranges(a, b);
  }

  void CopyLine() {
    const std::span<std::byte> from = RingLine();
    const std::span<std::byte> to = RingLine();
    if (from.data() != to.data()) std::ranges::copy(from, to.begin());
  }

  // Words of a line are those of an earlier image, as a power cut leaves them.
  void TearLine() {
    const std::vector<std::byte>* old = Earlier();
    if (old == nullptr) return;
    const std::span<std::byte> line = RingLine();
    const auto at = static_cast<uint64_t>(line.data() - image_.bytes.data());
    const uint8_t words = input_.Byte();
    for (uint64_t word = 0; word < 8; ++word) {
      if ((words >> word & 1) == 0) continue;
      std::copy_n(old->begin() + static_cast<int64_t>(at + word * 8), 8,
                  line.begin() + static_cast<int64_t>(word * 8));
    }
  }

  // A page, a copy or a line as it was before.
  void FromEarlier() {
    const std::vector<std::byte>* old = Earlier();
    if (old == nullptr) return;
    constexpr uint64_t kUnits[] = {kPageBytes, kLineBytes, kLineBytes,
                                   4 * kLineBytes};
    const uint64_t unit = kUnits[input_.Below(4)];
    const uint64_t at = input_.Below(old->size() / unit) * unit;
    std::copy_n(old->begin() + static_cast<int64_t>(at), unit,
                image_.bytes.begin() + static_cast<int64_t>(at));
    stale_ = true;
  }

  const std::vector<std::byte>* Earlier() {
    if (image_.earlier.empty()) return nullptr;
    const auto& old = image_.earlier[input_.Below(image_.earlier.size())];
    return old.size() == image_.bytes.size() ? &old : nullptr;
  }

  // The offset from the head on whose place is this line.
  uint64_t OffsetOf(uint64_t line) {
    const uint64_t capacity = task().ring.size();
    const uint64_t offset =
        task().head.offset / capacity * capacity + line * kLineBytes;
    return offset < task().head.offset ? offset + capacity : offset;
  }

  // Checksums as the epoch that owns the LSN, or any other one, would write.
  void SealLine(uint64_t line, bool seal_payload) {
    const std::span<std::byte> record = ring().subspan(line * kLineBytes);
    const uint64_t lsn = LoadLittle(record, 0, 8);
    const naive::EpochEntry* owner = naive::OwnerOf(task().table, lsn);
    if (input_.Below(8) == 7 && !task().table.empty()) {
      owner = &task().table[input_.Below(task().table.size())];
    }
    if (owner == nullptr) return;
    uint64_t offset = OffsetOf(line);
    if (input_.Below(16) == 15) offset += task().ring.size();  // another lap
    naive::ResealRecord(naive::RecordSeed(task().log_id, *owner, lsn, offset),
                        record, seal_payload);
  }

  // A line where a record starts, if the input finds one, else any line.
  uint64_t RecordLine() {
    const uint64_t first = input_.Below(ring_lines());
    for (uint64_t i = 0; i < ring_lines(); ++i) {
      const uint64_t line = (first + i) % ring_lines();
      if (LoadLittle(ring(), line * kLineBytes + 28, 2) == 0xa1f5) return line;
    }
    return first;
  }

  void RecordField() {
    const uint64_t line = RecordLine();
    const Field field = kRecordFields[input_.Below(std::size(kRecordFields))];
    const uint64_t at = line * kLineBytes + field.offset;
    StoreLittle(ring(), at, field.width,
                input_.Near(LoadLittle(ring(), at, field.width)));
    SealLine(line, input_.Flag());
  }

  void PayloadByte() {
    const uint64_t line = RecordLine();
    const uint64_t at = line * kLineBytes + 48 + input_.Below(96);
    if (at < ring().size()) ring()[at] ^= static_cast<std::byte>(input_.Byte());
    if (input_.Flag()) SealLine(line, /*seal_payload=*/true);
  }

  void Cleaned() {
    const uint64_t line = RecordLine();
    const uint64_t lsn = LoadLittle(ring(), line * kLineBytes, 8);
    const naive::EpochEntry* owner = naive::OwnerOf(task().table, lsn);
    if (owner == nullptr) return;
    uint64_t word = naive::CleanedWord(
        naive::RecordSeed(task().log_id, *owner, lsn, OffsetOf(line)));
    if (input_.Below(4) == 3) word ^= uint64_t{1} << input_.Below(64);
    StoreLittle(ring(), line * kLineBytes + 40, 8, word);
  }

  // A whole header from nothing.
  void Forge() {
    const uint64_t line = input_.Below(ring_lines());
    const std::span<std::byte> record = ring().subspan(line * kLineBytes);
    const uint64_t lsn = task().head.lsn + input_.Below(ring_lines() + 2);
    const naive::EpochEntry* owner = naive::OwnerOf(task().table, lsn);
    if (owner == nullptr) return;
    StoreLittle(record, 0, 8, lsn);
    StoreLittle(record, 8, 8, owner->epoch);
    StoreLittle(record, 16, 8, input_.Flag() ? 0 : input_.Near(lsn));
    StoreLittle(record, 24, 4, input_.Below(task().ring.size()));
    StoreLittle(record, 28, 2, 0xa1f5);
    StoreLittle(record, 30, 1, 1 + input_.Below(4));
    SealLine(line, input_.Flag());
  }

  // ---- The fixed part

  void SealCell(const naive::Cell& cell, int copy, std::span<std::byte> bytes) {
    const uint64_t content = LoadLittle(bytes, 16, 4);
    if (content > bytes.size() - naive::kCellHeader) return;
    StoreLittle(bytes, 20, 4, naive::CellCrc(cell, copy, bytes, content));
  }

  // Changes one field of a cell's header or of its content, in one copy or in
  // both, and seals it mostly.
  void ChangeCell(const naive::Cell& cell, std::span<std::byte> first,
                  std::span<std::byte> second, Field field) {
    const uint64_t copies = 1 + input_.Below(3);
    const uint64_t value = input_.Near(
        LoadLittle(copies == 2 ? second : first, field.offset, field.width));
    SetInCell(cell, first, second, field, copies, value);
  }

  // Bit i of `copies` stands for copy i.
  void SetInCell(const naive::Cell& cell, std::span<std::byte> first,
                 std::span<std::byte> second, Field field, uint64_t copies,
                 uint64_t value) {
    const bool seal = input_.Below(8) != 7;
    for (int copy = 0; copy < 2; ++copy) {
      if ((copies >> copy & 1) == 0) continue;
      const std::span<std::byte> bytes = copy == 0 ? first : second;
      StoreLittle(bytes, field.offset, field.width, value);
      if (seal) SealCell(cell, copy, bytes);
    }
    stale_ = true;
  }

  Field CellHeaderField() {
    constexpr Field kFields[] = {{8, 8}, {16, 4}, {0, 8}, {20, 4}};
    return kFields[input_.Below(4)];
  }

  void Superline() {
    if (bytes().size() < naive::kFixedBytes) return;
    const auto first =
        bytes().subspan(naive::SuperlineOffset(0), naive::kSuperlineCopyBytes);
    const auto second =
        bytes().subspan(naive::SuperlineOffset(1), naive::kSuperlineCopyBytes);
    Field field{};
    const uint64_t choice = input_.Below(kSuperlineWords + 10);
    if (choice >= kSuperlineWords + 8) {
      // Format version 4 and its mark, which may be one that can't be.
      const uint64_t version_and_flags = 4 | input_.Below(4) << 33;
      return SetInCell(naive::SuperlineCell(), first, second,
                       {naive::kCellHeader, 8}, 1 + input_.Below(3),
                       version_and_flags);
    }
    if (choice < kSuperlineWords) {
      field = {naive::kCellHeader + 8 * choice, 8};
    } else if (choice < kSuperlineWords + 4) {
      constexpr uint64_t kNarrow[] = {0, 4, 168, 172};
      field = {naive::kCellHeader + kNarrow[choice - kSuperlineWords], 4};
    } else {
      field = CellHeaderField();
    }
    ChangeCell(naive::SuperlineCell(), first, second, field);
  }

  void EpochTable() {
    const uint64_t capacity = region().superline.table_capacity;
    const uint64_t copy_bytes = naive::TableCopyBytes(capacity);
    if (naive::TableOffset(capacity, 2) > bytes().size()) return;
    const uint64_t entries = std::min<uint64_t>(region().table.size() + 1, 8);
    Field field = CellHeaderField();
    const uint64_t choice = input_.Below(8);
    if (choice < 5) {
      field = {
          naive::kCellHeader + kEntryBytes * input_.Below(entries) + 8 * choice,
          8};
      if (field.offset + 8 > copy_bytes) return;
    } else if (choice == 5) {
      // A whole number of entries, so that it is looked into.
      const std::span<std::byte> first =
          bytes().subspan(naive::TableOffset(capacity, 0), copy_bytes);
      const uint64_t content = kEntryBytes * input_.Below(entries + 1);
      if (content > copy_bytes - naive::kCellHeader) return;
      StoreLittle(first, 16, 4, content);
      SealCell(naive::TableCell(task().log_id), 0, first);
      stale_ = true;
      return;
    }
    ChangeCell(naive::TableCell(task().log_id),
               bytes().subspan(naive::TableOffset(capacity, 0), copy_bytes),
               bytes().subspan(naive::TableOffset(capacity, 1), copy_bytes),
               field);
  }

  void Watermark() {
    if (bytes().size() < naive::kFixedBytes) return;
    const int line = static_cast<int>(input_.Below(2));
    const std::span<std::byte> where =
        bytes().subspan(naive::WatermarkOffset(line), kLineBytes);
    if (input_.Below(4) == 3) return FlipBit(where);
    const Field field =
        kWatermarkFields[input_.Below(std::size(kWatermarkFields))];
    StoreLittle(where, field.offset, field.width,
                input_.Near(LoadLittle(where, field.offset, field.width)));
    // Mostly with the checksum of its own line.
    const int index = input_.Below(8) == 7 ? 1 - line : line;
    StoreLittle(where, 60, 4, naive::WatermarkCrc(task().log_id, index, where));
    stale_ = true;
  }

  void CleanClose() {
    if (bytes().size() < naive::kFixedBytes) return;
    uint64_t word =
        naive::CleanCloseWord(task().log_id, region().superline_seq);
    const uint8_t choice = input_.Byte();
    if (choice % 4 == 1) word = 0;
    if (choice % 4 == 2) word ^= uint64_t{1} << (choice / 4);
    StoreLittle(bytes(), naive::kCleanCloseOffset, 8, word);
  }

  void Resize() {
    if (input_.Flag()) {
      image_.bytes.resize(image_.bytes.size() + input_.Below(256));
    } else {
      image_.bytes.resize(input_.Below(image_.bytes.size() + 1));
    }
    stale_ = true;
  }

  FuzzInput& input_;
  TinyImage& image_;
  // The region by its own words; by its last ones if it can't be read.
  bool stale_ = true;
  naive::Region region_;
  naive::ScanTask task_;
};

}  // namespace

void Mutate(FuzzInput& input, MutationTarget target, int mutations_max,
            TinyImage* image) {
  Mutator mutator(input, image);
  for (int done = 0; done < mutations_max && !input.empty(); ++done) {
    mutator.One(target);
  }
}

}  // namespace alpheus::testing
