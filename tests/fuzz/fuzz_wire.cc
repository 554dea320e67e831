// SPDX-License-Identifier: Apache-2.0
// Fuzzes what a peer of the software adapter may send: a header, and a hello
// behind it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "log/format/checksum.h"
#include "replication/fabric/tcp/wire.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"

namespace alpheus::testing {
namespace {

constexpr fabric::tcp::WireBounds kBounds{.message_bytes_max = 4096,
                                          .private_bytes_max = 64};

// TW1 (wire.h): no length beyond the bounds gets through.
void ExpectBounded(const fabric::tcp::WireHeader& header) {
  const uint64_t most = std::max<uint64_t>(
      kBounds.message_bytes_max,
      fabric::tcp::kWireHelloBytes + kBounds.private_bytes_max);
  ExpectTrue(fabric::tcp::PayloadBytes(header) <= most,
             "TW1: payloads are bounded");
}

void FuzzHeader(FuzzInput& input) {
  std::array<std::byte, fabric::tcp::kWireHeaderBytes> bytes{};
  const std::span<const uint8_t> raw = input.Take(bytes.size());
  std::ranges::transform(raw, bytes.begin(),
                         [](uint8_t b) { return std::byte{b}; });
  // Without a valid sum no code after its check would be reached.
  if (!fabric::tcp::IsHandshake(
          static_cast<fabric::tcp::WireOpcode>(bytes[4]))) {
    std::memset(&bytes[12], 0, sizeof(uint32_t));
    const uint32_t sum = Crc32c(fabric::tcp::kWireMagic, bytes);
    std::memcpy(&bytes[12], &sum, sizeof(sum));
  }
  const auto header = fabric::tcp::DecodeHeader(bytes, kBounds);
  if (!header) return;
  ExpectBounded(*header);
  ExpectTrue(fabric::tcp::EncodeHeader(*header) == bytes,
             "a header that decodes is the encoding of its fields");
}

void FuzzHello(FuzzInput& input) {
  const std::span<const uint8_t> raw = input.rest();
  std::vector<std::byte> bytes(raw.size());
  std::ranges::transform(raw, bytes.begin(),
                         [](uint8_t b) { return std::byte{b}; });
  const auto hello = fabric::tcp::DecodeHello(bytes);
  if (!hello) return;
  const auto again = fabric::tcp::EncodeHello(*hello);
  ExpectTrue(std::ranges::equal(again, std::span(bytes).first(again.size())),
             "a hello that decodes is the encoding of its limits");
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzHeader(input);
  alpheus::testing::FuzzHello(input);
  return 0;
}
