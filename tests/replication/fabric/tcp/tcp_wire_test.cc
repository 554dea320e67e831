// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "log/format/checksum.h"
#include "replication/fabric/tcp/wire.h"
#include "replication/fabric/tcp/words.h"

namespace alpheus::fabric::tcp {
namespace {

constexpr WireBounds kBounds{.message_bytes_max = 1000,
                             .private_bytes_max = 10};
constexpr WireHeader kWriteHeader{.opcode = WireOpcode::kWriteImmediate,
                                  .immediate = 0x01020304,
                                  .length = 1000,
                                  .key = 0x1112131415161718,
                                  .offset = 0x2122232425262728,
                                  .sequence = 0x3132333435363738};

// docs/design/fabric.md#the-wire-of-the-adapter-over-tcp-version-1, byte by
// byte: a program of another language reads this.
TEST(WireTest, HeaderLiesAsDocumented) {
  const std::array<uint8_t, kWireHeaderBytes> expected = {
      'A',  'L',  'P',  'F',  17,   0,    0,    0,    4,    3,    2,    1,
      0x17, 0x82, 0xff, 0x12, 0xe8, 3,    0,    0,    0,    0,    0,    0,
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x28, 0x27, 0x26, 0x25,
      0x24, 0x23, 0x22, 0x21, 0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31};
  const auto bytes = EncodeHeader(kWriteHeader);
  EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0);
}

// Every opcode, at the edges of its lengths.
TEST(WireTest, LengthsAreBoundedByOpcode) {
  struct Case {
    WireOpcode opcode;
    uint64_t least;
    uint64_t most;
  };
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  for (const auto& [opcode, least, most] : {
           Case{WireOpcode::kHello, kWireHelloBytes, kWireHelloBytes + 10},
           Case{WireOpcode::kAccept, kWireHelloBytes, kWireHelloBytes + 10},
           Case{WireOpcode::kReject, 0, 10},
           Case{WireOpcode::kWrite, 0, 1000},
           Case{WireOpcode::kWriteImmediate, 0, 1000},
           Case{WireOpcode::kRead, 0, 1000},
           Case{WireOpcode::kCompareSwap, 16, 16},
           Case{WireOpcode::kFetchAdd, 8, 8},
           Case{WireOpcode::kFlush, 0, kAny},
           Case{WireOpcode::kSend, 0, 1000},
           Case{WireOpcode::kAck, 0, 0},
           Case{WireOpcode::kReadReply, 0, 1000},
           Case{WireOpcode::kAtomicReply, 8, 8},
           Case{WireOpcode::kNak, 0, 0},
           Case{WireOpcode::kPing, 0, 0},
           Case{WireOpcode::kPong, 0, 0},
       }) {
    SCOPED_TRACE(static_cast<int>(opcode));
    WireHeader header{.opcode = opcode,
                      .immediate = kWireVersion,
                      .length = 0,
                      .key = 0,
                      .offset = 0,
                      .sequence = 0};
    for (const uint64_t good : {least, most}) {
      header.length = good;
      EXPECT_EQ(DecodeHeader(EncodeHeader(header), kBounds), header);
    }
    for (const uint64_t bad : {least - 1, most + 1, kAny}) {
      if (bad >= least && bad <= most) continue;
      header.length = bad;
      EXPECT_FALSE(DecodeHeader(EncodeHeader(header), kBounds)) << bad;
    }
  }
}

// With the sum that a header of these bytes has.
std::array<std::byte, kWireHeaderBytes> Resummed(
    std::array<std::byte, kWireHeaderBytes> bytes) {
  std::memset(&bytes[12], 0, sizeof(uint32_t));
  const uint32_t sum = Crc32c(kWireMagic, bytes);
  std::memcpy(&bytes[12], &sum, sizeof(sum));
  return bytes;
}

TEST(WireTest, MagicZerosAndOpcodeAreChecked) {
  for (size_t at = 0; at < kWireHeaderBytes; ++at) {
    // Byte 16 is the lowest of the length, which may be any.
    auto bytes = EncodeHeader(kWriteHeader);
    bytes[at] ^= std::byte{0x80};
    const bool is_checked = at < 8 || (at >= 17 && at < 24);
    EXPECT_EQ(DecodeHeader(Resummed(bytes), kBounds).has_value(), !is_checked)
        << at;
  }
}

// TW1: no place, number or length is another one.
TEST(WireTest, EveryTurnedBitOfAHeaderIsSeen) {
  for (const WireOpcode opcode :
       {WireOpcode::kWrite, WireOpcode::kWriteImmediate, WireOpcode::kRead,
        WireOpcode::kSend, WireOpcode::kFlush, WireOpcode::kReadReply}) {
    WireHeader header = kWriteHeader;
    header.opcode = opcode;
    const auto bytes = EncodeHeader(header);
    ASSERT_EQ(DecodeHeader(bytes, kBounds), header);
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      auto turned = bytes;
      turned[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      EXPECT_FALSE(DecodeHeader(turned, kBounds)) << bit;
    }
  }
}

// A peer without sums is refused by the programs' own versions.
TEST(WireTest, HandshakeHasZerosInPlaceOfASum) {
  const WireHeader header{.opcode = WireOpcode::kHello,
                          .immediate = kWireVersion,
                          .length = kWireHelloBytes,
                          .key = 0,
                          .offset = 0,
                          .sequence = 0};
  auto bytes = EncodeHeader(header);
  EXPECT_EQ(DecodeHeader(bytes, kBounds), header);
  for (size_t at = 12; at < 16; ++at) EXPECT_EQ(bytes[at], std::byte{0});
  EXPECT_FALSE(DecodeHeader(Resummed(bytes), kBounds));
}

// TW2: whatever else a later version changes.
TEST(WireTest, HelloOfAnotherVersionIsRefused) {
  const WireHeader header{.opcode = WireOpcode::kHello,
                          .immediate = kWireVersion + 1,
                          .length = kWireHelloBytes,
                          .key = 0,
                          .offset = 0,
                          .sequence = 0};
  EXPECT_FALSE(DecodeHeader(EncodeHeader(header), kBounds));
}

TEST(WireTest, HelloSurvivesEncoding) {
  const WireHello hello{.sends_max = 1,
                        .receives_max = 2,
                        .message_bytes_max = 3,
                        .window_bytes = 4};
  const auto bytes = EncodeHello(hello);
  EXPECT_EQ(DecodeHello(bytes), hello);
  EXPECT_FALSE(DecodeHello(std::span(bytes).first(kWireHelloBytes - 1)));
  EXPECT_FALSE(DecodeHello(EncodeHello({.sends_max = 1,
                                        .receives_max = 2,
                                        .message_bytes_max = 3,
                                        .window_bytes = 0})));
}

TEST(WordsTest, OnlyWholeWordsLandBeforeTheEnd) {
  alignas(8) std::array<std::byte, 32> memory{};
  EXPECT_EQ(WholeWords(&memory[0], 7), 0U);
  EXPECT_EQ(WholeWords(&memory[0], 17), 16U);
  EXPECT_EQ(WholeWords(&memory[3], 4), 0U);
  EXPECT_EQ(WholeWords(&memory[3], 5), 5U);
  EXPECT_EQ(WholeWords(&memory[3], 14), 13U);
}

// All small starts and lengths, against bytes that must stay.
TEST(WordsTest, StoreAndLoadMoveExactlyTheBytes) {
  std::array<std::byte, 40> source;
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<std::byte>(i + 1);
  }
  for (size_t at = 0; at < 16; ++at) {
    for (size_t count = 0; count < 24; ++count) {
      alignas(8) std::array<std::byte, 40> memory{};
      StoreWords(&memory[at], std::span(source).subspan(1, count));
      for (size_t i = 0; i < memory.size(); ++i) {
        const bool is_in = i >= at && i < at + count;
        EXPECT_EQ(memory[i], is_in ? source[1 + i - at] : std::byte{0});
      }
      std::array<std::byte, 40> loaded{};
      LoadWords(std::span(memory).subspan(at, count), loaded.data());
      EXPECT_EQ(std::memcmp(loaded.data(), &source[1], count), 0);
    }
  }
}

}  // namespace
}  // namespace alpheus::fabric::tcp
