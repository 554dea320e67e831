// SPDX-License-Identifier: Apache-2.0
// Fuzzes the superline: its content by itself, and regions whose superline
// copies were damaged, forged or made to disagree.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/format/superline.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/damaged_region.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/image_program.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/oracles/naive_format.h"

namespace alpheus::testing {
namespace {

constexpr size_t kContentBytes = sizeof(SuperlineFormat);

// Makes the content one of version 1 or 2.
void MakeOlder(std::vector<std::byte>& content, uint8_t version) {
  content.resize(version == 1 ? kSuperlineBytesOfVersion1
                              : kSuperlineBytesOfVersion2);
  content[0] = std::byte{version};
}

// Makes the content one of version 4, whose mark may be one that can't be.
void MakeMarked(std::vector<std::byte>& content, uint8_t mark) {
  content[0] = std::byte{4};
  content[4] = static_cast<std::byte>(mark % 4 << 1);
}

// A good content, cut or not, with the input's bytes laid over it.
std::vector<std::byte> MakeContent(FuzzInput& input) {
  const std::span<const std::byte> good =
      std::span(PlainImage().bytes).subspan(naive::kCellHeader, kContentBytes);
  std::vector<std::byte> content(good.begin(), good.end());
  const uint8_t size = input.Byte();
  if (size < 64) MakeOlder(content, size < 32 ? 1 : 2);
  if (size >= 64 && size < 96) MakeMarked(content, size);
  if (size >= 192) content.resize(input.Below(kContentBytes + 64));
  while (!input.empty() && !content.empty()) {
    const size_t at = input.Below(content.size());
    const size_t bytes = std::min(input.Below(17), content.size() - at);
    const std::span<const uint8_t> raw = input.Take(bytes);
    std::ranges::transform(raw, content.begin() + static_cast<int64_t>(at),
                           [](uint8_t b) { return std::byte{b}; });
  }
  return content;
}

void FuzzContent(FuzzInput& input) {
  const std::vector<std::byte> content = MakeContent(input);
  naive::Superline expected;
  const naive::Outcome outcome = naive::ReadSuperline(content, &expected);
  const auto superline = DecodeSuperline(content);
  ExpectSameOutcome("superline", superline.status(), outcome);
  if (!superline.ok()) return;
  ExpectSameSuperline(*superline, expected);
  const auto again = DecodeSuperline(EncodeSuperline(*superline));
  ExpectTrue(again.ok() && *again == *superline, "encoding keeps all fields");
}

void FuzzOne(FuzzInput& input) {
  if (input.Flag()) {
    FuzzContent(input);
  } else {
    FuzzDamagedRegion(input, MutationTarget::kSuperline);
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
