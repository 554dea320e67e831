// SPDX-License-Identifier: Apache-2.0
// The baselines of the benchmarks must be logs, or beating them means nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "bench/harness/checksum_pass.h"
#include "bench/harness/line_stores.h"
#include "bench/local/candidates/flex_log.h"
#include "bench/local/candidates/ones.h"
#include "bench/local/candidates/zero_log.h"
#include "log/base/random.h"
#include "log/format/record.h"

namespace alpheus::bench {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Draw(Random& random, size_t size) {
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.Next());
  return bytes;
}

// Memory on a line, as regions are.
class Memory {
 public:
  explicit Memory(size_t bytes) : lines_(bytes / kLineBytes) {}
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(lines_.data()),
            lines_.size() * kLineBytes};
  }

 private:
  std::vector<Line> lines_;
};

template <class LogType>
std::vector<Bytes> Recovered(std::span<std::byte> memory) {
  std::vector<Bytes> records;
  const absl::StatusOr<uint64_t> count =
      LogType::Recover(memory, [&](std::span<const std::byte> payload) {
        records.emplace_back(payload.begin(), payload.end());
      });
  EXPECT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count.value_or(0), records.size());
  return records;
}

template <class LogType>
class BaselineLogTest : public ::testing::Test {};

using BaselineLogs = ::testing::Types<FlexLog, ZeroLog>;
TYPED_TEST_SUITE(BaselineLogTest, BaselineLogs);

// All lengths around whole lines, all-zero and all-one payloads.
TYPED_TEST(BaselineLogTest, RecordsOfAllLengthsComeBack) {
  Memory memory(1 << 20);
  Random random(1);
  std::vector<Bytes> records;
  for (size_t size = 0; size < 300; ++size) {
    records.push_back(Draw(random, size));
  }
  records.emplace_back(100, std::byte{0});
  records.emplace_back(100, std::byte{0xff});
  TypeParam log(memory.bytes());
  for (const Bytes& record : records) ASSERT_TRUE(log.Append(record));
  EXPECT_EQ(Recovered<TypeParam>(memory.bytes()), records);
}

TYPED_TEST(BaselineLogTest, GoesOnWhereItEnded) {
  Memory memory(1 << 16);
  const Bytes first(10, std::byte{1});
  const Bytes second(200, std::byte{2});
  ASSERT_TRUE(TypeParam(memory.bytes()).Append(first));
  ASSERT_TRUE(TypeParam(memory.bytes()).Append(second));
  EXPECT_EQ(Recovered<TypeParam>(memory.bytes()),
            (std::vector<Bytes>{first, second}));
}

// A record that is refused for want of room leaves the log as it was.
TYPED_TEST(BaselineLogTest, FillsAndRefuses) {
  Memory memory(1 << 12);
  TypeParam log(memory.bytes());
  const Bytes record(100, std::byte{3});
  size_t count = 0;
  while (log.Append(record)) ++count;
  EXPECT_GT(count, 20u);
  EXPECT_EQ(Recovered<TypeParam>(memory.bytes()).size(), count);
  EXPECT_FALSE(log.Append(Bytes(1 << 12)));
}

// Old records never come back behind new ones.
TYPED_TEST(BaselineLogTest, NothingOldComesBackAfterClear) {
  Memory memory(1 << 14);
  TypeParam log(memory.bytes());
  const Bytes old(1000, std::byte{4});
  while (log.Append(old)) {
  }
  log.Clear();
  EXPECT_TRUE(Recovered<TypeParam>(memory.bytes()).empty());
  const Bytes fresh(30, std::byte{5});
  ASSERT_TRUE(log.Append(fresh));
  EXPECT_EQ(log.records(), 1u);
  EXPECT_EQ(Recovered<TypeParam>(memory.bytes()), std::vector<Bytes>{fresh});
}

// FL1: bytes behind the tail are no record, whatever they are.
TEST(FlexLogTest, NothingBehindTheTailIsRead) {
  Memory memory(1 << 12);
  FlexLog log(memory.bytes());
  const Bytes record(50, std::byte{6});
  ASSERT_TRUE(log.Append(record));
  log.StoreHeader(FlexLog::Seal(record));
  log.StorePayload(record);
  EXPECT_EQ(Recovered<FlexLog>(memory.bytes()).size(), 1u);
}

TEST(FlexLogTest, EveryFlippedBitBeforeTheTailIsDataLoss) {
  Memory memory(1 << 10);
  FlexLog log(memory.bytes());
  ASSERT_TRUE(log.Append(Bytes(20, std::byte{7})));
  // Not the 4 bytes of the header that mean nothing.
  for (size_t i = 0; i < sizeof(FlexLog::Header) + 20; ++i) {
    if (i >= 12 && i < 16) continue;
    for (int bit = 0; bit < 8; ++bit) {
      std::byte& place = memory.bytes()[kLineBytes + i];
      place ^= static_cast<std::byte>(1 << bit);
      const auto read =
          FlexLog::Recover(memory.bytes(), [](std::span<const std::byte>) {});
      EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss)
          << "byte " << i << ", bit " << bit;
      place ^= static_cast<std::byte>(1 << bit);
    }
  }
}

// ZL1 and the idea of the log: of the 8-byte words of the last record any may
// be missing after a power cut. Method: all subsets of words for a record of
// one line; only the one in which nothing that holds a one is missing is whole.
TEST(ZeroLogTest, RecordWithAnyWordMissingIsNotRead) {
  Memory memory(1 << 10);
  ZeroLog log(memory.bytes());
  const Bytes record(48, std::byte{0x11});
  ASSERT_TRUE(log.Append(record));
  Line whole;
  std::memcpy(&whole, memory.bytes().data(), sizeof(whole));
  for (int arrived = 0; arrived < 256; ++arrived) {
    for (size_t word = 0; word < 8; ++word) {
      std::byte* const place = memory.bytes().data() + 8 * word;
      if ((arrived >> word & 1) != 0) {
        std::memcpy(place, whole.bytes + 8 * word, 8);
      } else {
        std::memset(place, 0, 8);
      }
    }
    EXPECT_EQ(Recovered<ZeroLog>(memory.bytes()).size(),
              arrived == 255 ? 1u : 0u)
        << "words that arrived: " << arrived;
  }
}

// Lines of a larger record, and the order in which they reach the medium.
TEST(ZeroLogTest, RecordWithALineMissingIsNotRead) {
  const Bytes record(500, std::byte{0x80});
  for (uint64_t missing = 0; missing * kLineBytes < 16 + 500; ++missing) {
    Memory memory(1 << 12);
    ZeroLog log(memory.bytes());
    ASSERT_TRUE(log.Append(record));
    std::memset(memory.bytes().data() + missing * kLineBytes, 0, kLineBytes);
    EXPECT_TRUE(Recovered<ZeroLog>(memory.bytes()).empty()) << missing;
  }
}

// Beside a loop over bits, at all lengths and alignments.
TEST(OnesTest, CountAgreesWithCountingBitByBit) {
  Random random(2);
  const Bytes bytes = Draw(random, 400);
  for (size_t begin = 0; begin < 9; ++begin) {
    uint64_t expected = 0;
    for (size_t end = begin; end < bytes.size(); ++end) {
      EXPECT_EQ(CountOnes({bytes.data() + begin, end - begin}), expected);
      for (int bit = 0; bit < 8; ++bit) {
        expected += std::to_integer<unsigned>(bytes[end] >> bit & std::byte{1});
      }
    }
  }
}

// Every kind of store, at all alignments: the bytes arrive, no other changes.
TEST(LineStoresTest, CopyAndFlushWritesTheRangeOnly) {
  Random random(3);
  const Bytes source = Draw(random, 400);
  for (size_t begin = 0; begin < 70; ++begin) {
    for (const size_t size : {0, 1, 63, 64, 65, 130, 300}) {
      Memory memory(512);
      Bytes expected(512);
      std::memcpy(expected.data() + begin, source.data() + begin % 7, size);
      CopyAndFlush(memory.bytes().data() + begin, source.data() + begin % 7,
                   size);
      Fence();
      EXPECT_EQ(std::memcmp(memory.bytes().data(), expected.data(), 512), 0)
          << begin << ", " << size;
    }
  }
}

TEST(LineStoresTest, EveryKindOfStoreWritesItsLines) {
  Random random(4);
  const Bytes source = Draw(random, 3 * kLineBytes + 1);
  std::vector<StoreLines> stores = {StoreLinesNt16, StoreLinesCached,
                                    WidestNt()};
  for (const StoreLines store : stores) {
    Memory memory(5 * kLineBytes);
    store(memory.bytes().data() + kLineBytes, source.data() + 1, 3);
    Fence();
    EXPECT_EQ(std::memcmp(memory.bytes().data() + kLineBytes, source.data() + 1,
                          3 * kLineBytes),
              0);
    EXPECT_EQ(CountOnes(memory.bytes().first(kLineBytes)), 0u);
    EXPECT_EQ(CountOnes(memory.bytes().last(kLineBytes)), 0u);
  }
}

// The pass visits records that lie behind each other and stops at the rest.
TEST(ChecksumPassTest, CountsRecordsAndSumsTheirBytes) {
  Memory memory(1 << 12);
  const auto put = [&](uint64_t offset, uint32_t payload_bytes) {
    RecordHeader header{};
    header.magic = kRecordMagic;
    header.payload_bytes = payload_bytes;
    std::memcpy(memory.bytes().data() + offset, &header, sizeof(header));
    return offset + RecordBytes(payload_bytes);
  };
  put(put(put(0, 10), 0), 1000);
  const PassResult before = ChecksumPass(memory.bytes());
  EXPECT_EQ(before.records, 3u);
  memory.bytes()[kRecordHeaderBytes] = std::byte{1};  // payload of the first
  EXPECT_NE(ChecksumPass(memory.bytes()).sum, before.sum);
}

TEST(ChecksumPassTest, DoesNotReadBehindTheRing) {
  Memory memory(4 * kLineBytes);
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.payload_bytes = 1 << 20;
  std::memcpy(memory.bytes().data(), &header, sizeof(header));
  EXPECT_EQ(ChecksumPass(memory.bytes()).records, 0u);
}

}  // namespace
}  // namespace alpheus::bench
