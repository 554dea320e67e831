// SPDX-License-Identifier: Apache-2.0
#include "log/format/record.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "log/base/random.h"
#include "log/format/checksum.h"

namespace alpheus {
namespace {

const EpochKey kKey({1, 2}, Epoch(3), 4);
constexpr std::string_view kPayload = "a payload";

RecordHeader Header(uint64_t seed) {
  RecordHeader header{};
  header.lsn = 7;
  header.epoch = 3;
  header.payload_bytes = kPayload.size();
  header.magic = kRecordMagic;
  header.type = static_cast<uint8_t>(RecordType::kData);
  header.payload_crc =
      PayloadChecksum(seed, Crc32c(kCrcStart, AsBytes(kPayload)));
  header.header_crc = HeaderChecksum(seed, header);
  return header;
}

uint64_t Seed() { return kKey.Seed(Lsn(7), RingOffset(128)); }

TEST(ChecksumTest, IsCrc32cWithoutTheFinalInversion) {
  EXPECT_EQ(~Crc32c(~0u, AsBytes("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(Crc32c(5, AsBytes("ab")), AsBytes("cd")),
            Crc32c(5, AsBytes("abcd")));
}

// One bit at a time, from the definition.
uint32_t SlowCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
  }
  return crc;
}

TEST(ChecksumTest, EveryLengthAndAlignmentAgreesWithTheDefinition) {
  Random random(1);
  std::vector<std::byte> bytes(600);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
  for (size_t length = 0; length <= 520; ++length) {
    const auto range = std::span(bytes).subspan(length % 16, length);
    EXPECT_EQ(Crc32c(7, range), SlowCrc32c(7, range)) << length;
  }
}

HeaderWords AsWords(const RecordHeader& header) {
  return LoadHeader(reinterpret_cast<const std::byte*>(&header));
}

TEST(RecordTest, HeaderIsSummedAsItLiesInMemory) {
  const RecordHeader header = Header(Seed());
  EXPECT_EQ(
      header.header_crc ^ static_cast<uint32_t>(Seed()),
      SlowCrc32c(kCrcStart, std::as_bytes(std::span(&header, 1))
                                .first<offsetof(RecordHeader, header_crc)>()));
  uint64_t word = 0;
  std::memcpy(&word, &header.payload_bytes, sizeof(word));
  EXPECT_EQ(LengthAndTypeWord(header), word);
  std::memcpy(&word, &header.payload_crc, sizeof(word));
  EXPECT_EQ(PublishWord(header), word);
}

TEST(RecordTest, SealedRecordValidates) {
  const RecordHeader header = Header(Seed());
  EXPECT_TRUE(HeaderIsValid(Seed(), AsWords(header)));
  EXPECT_TRUE(PayloadIsValid(Seed(), AsWords(header), AsBytes(kPayload)));
}

// REC1, REC3 (record.h): every bit of the header is covered, but for the
// cleaned word, which no single flip turns into "cleaned".
TEST(RecordTest, OneFlippedBitOfTheHeaderIsSeenOrMeansNothing) {
  const RecordHeader good = Header(Seed());
  for (size_t bit = 0; bit < 8 * sizeof(good); ++bit) {
    RecordHeader header = good;
    reinterpret_cast<unsigned char*>(&header)[bit / 8] ^= 1u << bit % 8;
    if (bit / 8 >= offsetof(RecordHeader, cleaned)) {
      EXPECT_NE(header.cleaned, CleanedWord(Seed()));
    } else {
      EXPECT_FALSE(HeaderIsValid(Seed(), AsWords(header))) << "bit " << bit;
    }
  }
}

TEST(RecordTest, OneFlippedBitOfThePayloadIsSeen) {
  const RecordHeader header = Header(Seed());
  std::string payload(kPayload);
  for (size_t bit = 0; bit < 8 * payload.size(); ++bit) {
    payload[bit / 8] ^= static_cast<char>(1u << bit % 8);
    EXPECT_FALSE(PayloadIsValid(Seed(), AsWords(header), AsBytes(payload)));
    payload[bit / 8] ^= static_cast<char>(1u << bit % 8);
  }
}

// REC2: the same bytes under another LSN, offset, epoch, nonce or log.
TEST(RecordTest, RecordOfAnotherPlaceDoesNotValidate) {
  const RecordHeader header = Header(Seed());
  for (const uint64_t other :
       {kKey.Seed(Lsn(8), RingOffset(128)), kKey.Seed(Lsn(7), RingOffset(192)),
        EpochKey({1, 2}, Epoch(4), 4).Seed(Lsn(7), RingOffset(128)),
        EpochKey({1, 2}, Epoch(3), 5).Seed(Lsn(7), RingOffset(128)),
        EpochKey({1, 9}, Epoch(3), 4).Seed(Lsn(7), RingOffset(128))}) {
    EXPECT_FALSE(HeaderIsValid(other, AsWords(header)));
    EXPECT_FALSE(PayloadIsValid(other, AsWords(header), AsBytes(kPayload)));
    EXPECT_NE(CleanedWord(other), CleanedWord(Seed()));
  }
}

// P-L2: memory that was never written.
TEST(RecordTest, UniformMemoryIsNoRecord) {
  for (int byte = 0; byte < 256; ++byte) {
    RecordHeader header;
    std::memset(static_cast<void*>(&header), byte, sizeof(header));
    EXPECT_FALSE(HeaderIsValid(Seed(), AsWords(header)));
  }
}

TEST(RecordTest, RandomMemoryIsNoRecord) {
  Random random(20260101);
  for (int i = 0; i < 100'000; ++i) {
    RecordHeader header;
    uint64_t words[sizeof(header) / 8];
    for (uint64_t& word : words) word = random.Next();
    std::memcpy(static_cast<void*>(&header), words, sizeof(header));
    header.magic = kRecordMagic;
    header.type = 1;
    EXPECT_FALSE(HeaderIsValid(Seed(), AsWords(header)));
  }
}

TEST(RecordTest, EmptyPayloadHasAChecksumToo) {
  RecordHeader header = Header(Seed());
  header.payload_bytes = 0;
  header.payload_crc = 0;
  header.header_crc = HeaderChecksum(Seed(), header);
  EXPECT_FALSE(PayloadIsValid(Seed(), AsWords(header), {}));
  header.payload_crc = PayloadChecksum(Seed(), kCrcStart);
  header.header_crc = HeaderChecksum(Seed(), header);
  EXPECT_TRUE(PayloadIsValid(Seed(), AsWords(header), {}));
}

TEST(RecordTest, SizesRoundUpToLines) {
  EXPECT_EQ(RecordLines(0), 1u);
  EXPECT_EQ(RecordLines(16), 1u);
  EXPECT_EQ(RecordLines(17), 2u);
  EXPECT_EQ(RecordLines(80), 2u);
  EXPECT_EQ(RecordLines(81), 3u);
}

TEST(RecordTest, ChainDependsOnOrder) {
  EXPECT_NE(ExtendChain(ExtendChain(0, 1), 2),
            ExtendChain(ExtendChain(0, 2), 1));
}

}  // namespace
}  // namespace alpheus
