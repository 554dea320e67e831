// SPDX-License-Identifier: Apache-2.0
// Fuzzes the watermark: lines by themselves, the pair that they make, and
// regions whose lines were damaged, forged or exchanged.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "log/base/ids.h"
#include "log/format/watermark.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/damaged_region.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/line_buffer.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/oracles/naive_format.h"

namespace alpheus::testing {
namespace {

constexpr Uuid kLogId = {5, 6};
constexpr uint32_t kMark = 0x4b52414d;

// A line that mostly holds.
LineBuffer MakeLine(FuzzInput& input, int index) {
  const LineBuffer empty(kLineBytes);
  LineBuffer line(empty.bytes());
  const uint8_t choice = input.Byte();
  if (choice >= 128) {
    const auto raw = std::as_bytes(input.Take(kLineBytes));
    std::ranges::copy(raw, line.bytes().begin());
  } else {
    naive::StoreLittle(line.bytes(), 0, 8, input.Below(4));
    naive::StoreLittle(line.bytes(), 8, 8, input.Near(8));
    naive::StoreLittle(line.bytes(), 16, 8, input.Near(64));
    naive::StoreLittle(line.bytes(), 24, 8, input.Near(1));
  }
  if (choice % 8 != 7) naive::StoreLittle(line.bytes(), 56, 4, kMark);
  if (choice % 16 != 15) {
    const int sealed_as = choice % 16 == 14 ? 1 - index : index;
    naive::StoreLittle(
        line.bytes(), 60, 4,
        naive::WatermarkCrc(NaiveId(kLogId), sealed_as, line.bytes()));
  }
  return line;
}

void ExpectEncodingIsRead(int index, const Watermark& watermark) {
  const WatermarkFormat encoded = EncodeWatermark(kLogId, index, watermark);
  std::array<std::byte, sizeof(encoded)> bytes;
  std::memcpy(bytes.data(), &encoded, sizeof(encoded));
  ExpectSameWatermark(watermark,
                      naive::ReadWatermark(NaiveId(kLogId), index, bytes));
}

// WMK2 (watermark.h): the line that is written next is not the one that holds.
void ExpectNextIsNotTheBest(const WatermarkPair& pair, Epoch epoch) {
  const int next = pair.NextLine(epoch);
  ExpectTrue(next == 0 || next == 1, "there are two lines");
  const auto& doomed = pair.lines[static_cast<size_t>(next)];
  const auto& kept = pair.lines[static_cast<size_t>(1 - next)];
  if (!doomed) return;
  ExpectTrue(kept.has_value(), "the only good line is kept");
  const bool proves = doomed->epoch == epoch;
  ExpectTrue(!proves || (kept->epoch == epoch && kept->lsn >= doomed->lsn),
             "the line that proves most is kept");
}

void FuzzLines(FuzzInput& input) {
  WatermarkPair pair;
  uint64_t proven = 0;
  const uint64_t epoch = input.Below(4);
  for (int index = 0; index < 2; ++index) {
    const LineBuffer line = MakeLine(input, index);
    const auto decoded = DecodeWatermark(kLogId, index, line.bytes().data());
    const auto expected =
        naive::ReadWatermark(NaiveId(kLogId), index, line.bytes());
    ExpectSameWatermark(decoded, expected);
    pair.lines[static_cast<size_t>(index)] = decoded;
    if (decoded) ExpectEncodingIsRead(index, *decoded);
    if (expected && expected->epoch == epoch) {
      proven = std::max(proven, expected->lsn);
    }
  }
  ExpectSame("proven by the pair", pair.Proven(Epoch(epoch)), proven);
  ExpectNextIsNotTheBest(pair, Epoch(epoch));
}

void FuzzOne(FuzzInput& input) {
  if (input.Flag()) {
    FuzzLines(input);
  } else {
    FuzzDamagedRegion(input, MutationTarget::kWatermark);
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
