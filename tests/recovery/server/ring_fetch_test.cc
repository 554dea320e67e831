// SPDX-License-Identifier: Apache-2.0
// The bytes of a ring that are shown, by where the range lies.
#include "recovery/server/ring_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace alpheus::testing {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kFetchedCapacity = 512;

// Each byte says where it lies.
class RingFetchTest : public ::testing::Test {
 protected:
  RingFetchTest()
      : memory_(kFetchedCapacity), ring_(memory_.data(), kFetchedCapacity) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<std::byte>(i / 2);
    }
  }

  std::vector<std::byte> Bytes(uint64_t from, uint64_t bytes) const {
    std::vector<std::byte> all;
    for (uint64_t i = from; i < from + bytes; ++i) {
      all.push_back(memory_[i % kFetchedCapacity]);
    }
    return all;
  }

  std::vector<std::byte> memory_;
  const Ring ring_;
};

// Goal: RFT1, for all places of a range and of what may be shown.
TEST_F(RingFetchTest, NothingOutsideTheRangeIsShown) {
  for (uint64_t begin = 1024; begin <= 1536; begin += 64) {
    for (uint64_t end = begin; end <= begin + kFetchedCapacity; end += 64) {
      for (uint64_t from = 896; from <= 2176; from += 64) {
        for (const uint32_t bytes :
             {1u, 64u, 200u, 512u, recovery::kFetchBytesMax}) {
          const recovery::Fetch fetch{RingOffset(from), bytes};
          const recovery::Fetched shown = recovery::FetchedFrom(
              ring_, RingOffset(begin), RingOffset(end), fetch);
          EXPECT_EQ(shown.from, fetch.from);
          const bool is_inside = begin <= from && from < end;
          const uint64_t expected =
              is_inside ? std::min<uint64_t>(bytes, end - from) : 0;
          ASSERT_EQ(shown.bytes, Bytes(from, expected))
              << begin << " to " << end << ", asked " << from;
        }
      }
    }
  }
}

TEST_F(RingFetchTest, LargestOffsetsGoNotRound) {
  const RingOffset last((uint64_t{1} << 62) - kLineBytes);
  EXPECT_THAT(
      recovery::FetchedFrom(ring_, RingOffset(0), RingOffset(kFetchedCapacity),
                            {last, recovery::kFetchBytesMax})
          .bytes,
      IsEmpty());
}

}  // namespace
}  // namespace alpheus::testing
