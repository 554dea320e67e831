// SPDX-License-Identifier: Apache-2.0
// Fuzzes the two public primitives: sealed bytes and the atomic cell, over
// places that are arbitrary, nearly right, or right.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "alpheus/atomicity.h"
#include "alpheus/integrity.h"
#include "alpheus/persistent_region.h"
#include "log/format/atomic_cell.h"
#include "log/format/sealed.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/line_buffer.h"
#include "tests/support/oracles/naive_format.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kSealedLetters = 0x4445'4c41'4553'5041u;  // "APSEALED"
constexpr uint64_t kUserCellLetters = 0x4c4c'4543'5041u;     // "APCELL"
constexpr size_t kRegionBytes = 4 * kPageBytes;

using Value = std::optional<std::vector<std::byte>>;

Value ValueOf(const absl::StatusOr<std::vector<std::byte>>& read) {
  if (read.ok()) return *read;
  return std::nullopt;
}

// Memory that outlives an input: mapping it again would take most of the time.
PersistentRegion& SharedRegion() {
  static PersistentRegion region = *PersistentRegion::Anonymous(kRegionBytes);
  return region;
}

void Lay(std::span<const uint8_t> raw, std::span<std::byte> over) {
  std::ranges::transform(raw.first(std::min(raw.size(), over.size())),
                         over.begin(), [](uint8_t b) { return std::byte{b}; });
}

// ---- Sealed bytes

void SealSometimes(FuzzInput& input, uint64_t identity,
                   std::span<std::byte> place) {
  const uint8_t choice = input.Byte();
  if (choice % 4 == 3 || place.size() < kSealedHeaderBytes) return;
  naive::StoreLittle(place, 0, 8, kSealedLetters);
  const uint64_t room = place.size() - kSealedHeaderBytes;
  naive::StoreLittle(place, 8, 8, input.Below(room + 1));
  naive::Reseal(identity, place);
  if (choice % 4 == 2) {
    // A length that was forged with its checksum.
    naive::StoreLittle(place, 8, 8, input.Near(room));
    if (naive::LoadLittle(place, 8, 8) <= room) {
      naive::Reseal(identity, place);
    } else {
      // The header's checksum alone; the data's can't be right.
      const uint64_t seed = naive::Mix(kSealedLetters, identity);
      naive::StoreLittle(
          place, 20, 4,
          naive::Crc(static_cast<uint32_t>(seed), place.first(20)));
    }
  }
  if (choice >= 192) {
    place[input.Below(place.size())] ^= static_cast<std::byte>(input.Byte());
  }
}

void FuzzSealed(FuzzInput& input) {
  const uint64_t identity = input.Byte();
  const LineBuffer buffer(input.Below(160));
  const std::span<std::byte> place = buffer.bytes();
  SealSometimes(input, identity, place);
  if (input.Flag()) Lay(input.rest(), place);
  const Value expected = naive::ReadSealed(identity, place);
  ExpectTrue(Unseal(identity, place) == expected, "unsealed as it is written");
  ExpectTrue(!Unseal(identity + 1, place) ||
                 naive::ReadSealed(identity + 1, place).has_value(),
             "another identity reads nothing");

  // The same bytes at the end of a region, by the public call.
  PersistentRegion& region = SharedRegion();
  const size_t at = kRegionBytes - place.size();
  std::ranges::copy(place, region.bytes().begin() + static_cast<int64_t>(at));
  const auto read = ReliableRead(region, at, identity);
  ExpectTrue(ValueOf(read) == expected, "read as it is written");
  if (!expected) return;
  ExpectTrue(ReliableWrite(region, at, identity, *expected).ok(),
             "what was read fits");
  ExpectTrue(ValueOf(ReliableRead(region, at, identity)) == expected,
             "written as it was read");
}

// ---- Atomic cell

// The naive answer: the valid copy with the larger number.
Value NaiveCell(uint64_t identity, std::span<const std::byte> copies,
                size_t copy_bytes) {
  std::optional<naive::CellValue> newest;
  for (int i = 0; i < 2; ++i) {
    auto value = naive::ReadCopy(
        {kUserCellLetters, identity}, i,
        copies.subspan(static_cast<size_t>(i) * copy_bytes, copy_bytes));
    if (value && (!newest || value->seq > newest->seq)) {
      newest = std::move(value);
    }
  }
  if (!newest) return std::nullopt;
  return newest->content;
}

// `copy` goes on to the end of the region.
void ForgeCopy(FuzzInput& input, uint64_t identity, int index,
               std::span<std::byte> copy) {
  const uint8_t choice = input.Byte();
  const size_t content = input.Below(100);
  Lay(input.Take(content % 24), copy.subspan(kCellHeaderBytes));
  naive::StoreLittle(copy, 0, 8, kUserCellLetters);
  naive::StoreLittle(copy, 8, 8, input.Near(1));
  naive::StoreLittle(copy, 16, 4, content);
  const int sealed_as = choice % 8 == 7 ? 1 - index : index;
  naive::StoreLittle(
      copy, 20, 4,
      naive::CellCrc({kUserCellLetters, identity}, sealed_as, copy, content));
  if (choice >= 192) {
    copy[input.Below(140)] ^= static_cast<std::byte>(input.Byte());
  } else if (choice >= 160) {
    // A length at the end of the copy or beyond, with its checksum: the bytes
    // behind the copy are there, and are not its own.
    const size_t length = kPageBytes - 40 + input.Below(40);
    naive::StoreLittle(copy, 16, 4, length);
    naive::StoreLittle(
        copy, 20, 4,
        naive::CellCrc({kUserCellLetters, identity}, index, copy, length));
  }
}

void FuzzCell(FuzzInput& input) {
  PersistentRegion& region = SharedRegion();
  const AtomicPlace place{
      .offset = kPageBytes, .bytes_max = 100, .identity = input.Byte()};
  const std::span<std::byte> cell =
      region.bytes().subspan(place.offset, AtomicBytes(place.bytes_max));
  std::ranges::fill(cell, std::byte{0});
  for (int index = 0; index < 2; ++index) {
    if (input.Below(4) == 3) continue;
    ForgeCopy(
        input, place.identity, index,
        cell.subspan(static_cast<size_t>(index) * kPageBytes, kPageBytes));
  }
  const Value expected = NaiveCell(place.identity, cell, kPageBytes);
  const auto read = AtomicRead(region, place);
  ExpectTrue(ValueOf(read) == expected, "the newest valid copy is read");

  const auto raw = std::as_bytes(input.Take(place.bytes_max));
  // A number that can't grow can't be written over; no cell gets there.
  const bool can_grow = naive::LoadLittle(cell, 8, 8) + 1 != 0 &&
                        naive::LoadLittle(cell, kPageBytes + 8, 8) + 1 != 0;
  if (!can_grow || !AtomicWrite(region, place, raw).ok()) return;
  const Value written(std::in_place, raw.begin(), raw.end());
  ExpectTrue(ValueOf(AtomicRead(region, place)) == written,
             "what was written is read");
  ExpectTrue(NaiveCell(place.identity, cell, kPageBytes) == written,
             "what was written is read naively");
  // At rest the loss of either copy takes nothing.
  cell[input.Flag() ? 0 : kPageBytes] ^= std::byte{1};
  ExpectTrue(ValueOf(AtomicRead(region, place)) == written,
             "one copy is enough");
}

// Bad places are refused, whatever the numbers.
void FuzzPlace(FuzzInput& input) {
  PersistentRegion& region = SharedRegion();
  const size_t offset = input.Near(kRegionBytes);
  const auto sealed = ReliableRead(region, offset, 1);
  ExpectSame("no room for a header", absl::IsOutOfRange(sealed.status()),
             offset > kRegionBytes - kSealedHeaderBytes);
  const AtomicPlace place{.offset = input.Near(2) * kPageBytes,
                          .bytes_max = input.Near(kPageBytes),
                          .identity = 1};
  const bool fits = place.offset <= kRegionBytes &&
                    place.bytes_max <= kRegionBytes &&
                    AtomicBytes(place.bytes_max) <= kRegionBytes - place.offset;
  const auto cell = AtomicRead(region, place);
  ExpectSame("cell lies outside", absl::IsOutOfRange(cell.status()), !fits);
}

void FuzzOne(FuzzInput& input) {
  switch (input.Below(5)) {
    case 0:
    case 1:
      FuzzSealed(input);
      break;
    case 2:
    case 3:
      FuzzCell(input);
      break;
    default:
      FuzzPlace(input);
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
