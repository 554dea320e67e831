// SPDX-License-Identifier: Apache-2.0
// The parts of the verbs fabric that need no adapter: keys, times, greetings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "log/base/random.h"
#include "replication/fabric/verbs/greeting.h"
#include "replication/fabric/verbs/region_key_parts.h"
#include "replication/fabric/verbs/retries.h"
#include "replication/fabric/verbs/verbs_fabric.h"

namespace alpheus::fabric::verbs {
namespace {

TEST(RegionKeyTest, PartsComeBack) {
  for (const RegionKeyParts parts :
       {RegionKeyParts{1, 1, 0}, RegionKeyParts{0xffff'ffff, 0x7'ffff, 4095},
        RegionKeyParts{0xffff'ffff, 0x7'ffff, 4095, true},
        RegionKeyParts{0x8000'0000, 0x4'0000, 64, true},
        RegionKeyParts{0x8000'0000, 0x4'0000, 64}}) {
    EXPECT_EQ(PartsOf(MakeRegionKey(parts)), parts);
  }
}

// No offset that a region may have leads from one tag's addresses to another's.
TEST(RegionKeyTest, AddressesOfTwoTagsAreApart) {
  const RegionKeyParts low = {7, 5, 4095};
  const RegionKeyParts high = {7, 6, 0};
  EXPECT_GE(high.address() - low.address(), kRegionBytesMax - 4096);
  const RegionKeyParts last = {7, 0x7'ffff, 4095};
  EXPECT_GT(last.address() + (kRegionBytesMax - 4096), last.address());
}

TEST(RegionTagsTest, EachTagOnceAndInAnOrderOfItsOwn) {
  Random random(/*seed=*/3);
  Random other(/*seed=*/4);
  RegionTags tags(random);
  RegionTags others(other);
  constexpr uint32_t kAll = (1U << kTagBits) - 1;
  std::vector<bool> seen(kAll + 1);
  uint32_t same = 0;
  for (uint32_t i = 0; i < kAll; ++i) {
    const uint32_t tag = tags.Next();
    ASSERT_GT(tag, 0u);
    ASSERT_LE(tag, kAll);
    ASSERT_FALSE(seen[tag]) << "tag " << tag << " twice";
    seen[tag] = true;
    same += tag == others.Next() ? 1 : 0;
  }
  EXPECT_LT(same, 20u);
}

TEST(RetriesTest, PeerIsDroppedInTime) {
  for (const int64_t wait :
       {int64_t{400'000}, int64_t{100'000'000}, int64_t{2'000'000'000}}) {
    const int64_t given =
        AckTimeoutNanos(AckTimeoutCode(wait)) * (kRetries + 1);
    EXPECT_LE(given, wait);
    EXPECT_GT(given, wait / 2);
  }
}

// The time of an RNR NAK timer code: 0.01 ms for code 1, then powers of two and
// three halves of them by turns (InfiniBand Architecture 1.2.1, §9.7.5.2.8).
int64_t NotReadyTimerNanos(uint8_t code) {
  const int64_t units = code == 1       ? 1
                        : code % 2 == 0 ? int64_t{1} << code / 2
                                        : int64_t{3} << (code / 2 - 1);
  return units * 10'000;
}

TEST(RetriesTest, ReceiverIsWaitedForAsLongAsAsked) {
  for (const int64_t wait : {int64_t{60'000}, int64_t{1'000'000},
                             int64_t{500'000'000}, int64_t{2'900'000'000}}) {
    const uint8_t code = NotReadyTimerCode(wait);
    ASSERT_NE(code, 0);
    EXPECT_GE(NotReadyTimerNanos(code) * kNotReadyRetries, wait / 16 * 15);
    if (code > 1) {
      EXPECT_LT(NotReadyTimerNanos(code - 1) * kNotReadyRetries,
                wait / 16 * 15);
    }
  }
  EXPECT_EQ(NotReadyTimerCode(3'600'000'000'000), 0) << "the longest";
}

std::vector<std::byte> Encoded(const Greeting& greeting) {
  std::vector<std::byte> bytes(kGreetingHeaderBytes +
                               greeting.private_data.size());
  EXPECT_EQ(EncodeGreeting(greeting, bytes), bytes.size());
  return bytes;
}

TEST(GreetingTest, ComesBack) {
  for (const GreetingKind kind :
       {GreetingKind::kHello, GreetingKind::kAccept, GreetingKind::kReject}) {
    for (const std::string& data : {std::string(), std::string(300, '\0')}) {
      const Greeting greeting = {kind, 1u << 20, data};
      EXPECT_EQ(DecodeGreeting(Encoded(greeting)), greeting);
    }
  }
}

// VG1, and each byte of the header counts.
TEST(GreetingTest, NonsenseIsNone) {
  const std::vector<std::byte> good = Encoded({GreetingKind::kHello, 1, "abc"});
  for (size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(DecodeGreeting(std::span(good).first(bytes))) << bytes;
  }
  std::vector<std::byte> longer = good;
  longer.push_back({});
  EXPECT_FALSE(DecodeGreeting(longer));
  for (size_t at = 0; at < 16; ++at) {
    std::vector<std::byte> bad = good;
    bad[at] ^= std::byte{0x80};
    EXPECT_FALSE(DecodeGreeting(bad)) << "byte " << at;
  }
  EXPECT_FALSE(DecodeGreeting(Encoded({GreetingKind::kHello, 0, ""})));
  EXPECT_FALSE(DecodeGreeting(Encoded({GreetingKind{4}, 1, ""})));
}

TEST(GreetingTest, CallsAreKnown) {
  std::vector<std::byte> said(56);
  EXPECT_FALSE(IsCalling(said));
  EXPECT_FALSE(IsCalling({}));
  std::memcpy(said.data(), &kCalling, sizeof(kCalling));
  EXPECT_TRUE(IsCalling(said)) << "zeros may follow";
  said[4] = std::byte{1};
  EXPECT_FALSE(IsCalling(said)) << "another version";
}

TEST(VerbsFabricTest, AdapterThatIsNotThereIsNotFound) {
  Random random(/*seed=*/1);
  VerbsFabricOptions options;
  options.device = "no such adapter";
  const auto fabric = VerbsFabric::Open(options, Clock::Real(), random);
  EXPECT_TRUE(absl::IsNotFound(fabric.status())) << fabric.status();
  EXPECT_THAT(std::string(fabric.status().message()),
              ::testing::HasSubstr("\"no such adapter\""));
}

}  // namespace
}  // namespace alpheus::fabric::verbs
