// SPDX-License-Identifier: Apache-2.0
#include "log/format/superline.h"

#include <gtest/gtest.h>

#include <cstring>

namespace alpheus {
namespace {

Superline Example() {
  Superline s;
  s.cluster_id = {1, 2};
  s.log_id = {3, 4};
  s.node = NodeId(5);
  s.incarnation = 6;
  s.region_bytes = 7;
  s.ring_offset = 8;
  s.ring_capacity = 9;
  s.table_capacity = 10;
  s.configuration = {
      {11, 3, 2, {{NodeId(5), 6}, {NodeId(12), 13}, {NodeId(14), 15}}},
      MemberList{25, 2, 1, {{NodeId(26), 27}, {NodeId(28), 29}}}};
  s.promised_epoch = Epoch(16);
  s.promised_node = NodeId(17);
  s.promised_incarnation = 18;
  s.log_epoch = Epoch(19);
  s.table_seq = 20;
  s.head_lsn = Lsn(21);
  s.head_offset = RingOffset(22);
  s.head_chain = 23;
  s.repairing = true;
  s.unsafe_shutdown_count = 24;
  s.ceiling = RingOffset(30);
  return s;
}

TEST(SuperlineTest, SurvivesEncoding) {
  const auto decoded = DecodeSuperline(EncodeSuperline(Example()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, Example());
}

TEST(SuperlineTest, WhatItWasMadeFromLiesBehindTheMembers) {
  const std::vector<std::byte> content = EncodeSuperline(Example());
  ASSERT_EQ(content.size(), 712u);
  EXPECT_EQ(FormatVersionOf(content), 3u);
  const auto at = [&content](size_t offset) {
    return static_cast<int>(content[offset]);
  };
  EXPECT_EQ(at(432), 25);
  EXPECT_EQ(at(440), 2);
  EXPECT_EQ(at(444), 1);
  EXPECT_EQ(at(448), 26);
  EXPECT_EQ(at(456), 27);
  EXPECT_EQ(at(464), 28);
  EXPECT_EQ(at(472), 29);
  EXPECT_EQ(at(704), 30);
}

// SUP6. A program that knows nothing of marks must not take a marked replica
// for one that may promise.
TEST(SuperlineTest, MarkOfDeletionHasAVersionOfItsOwn) {
  for (const Deletion deletion : {Deletion::kMarked, Deletion::kDecided}) {
    for (const bool repairing : {false, true}) {
      Superline marked = Example();
      marked.repairing = repairing;
      marked.deletion = deletion;
      const std::vector<std::byte> content = EncodeSuperline(marked);
      EXPECT_EQ(content.size(), 712u);
      EXPECT_EQ(FormatVersionOf(content), 4u);
      EXPECT_EQ(static_cast<uint32_t>(content[4]),
                (repairing ? 1 : 0) + 2 * static_cast<uint32_t>(deletion));
      const auto decoded = DecodeSuperline(content);
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(*decoded, marked);
    }
  }
}

TEST(SuperlineTest, Version4WithoutAMarkIsDamaged) {
  std::vector<std::byte> content = EncodeSuperline(Example());
  content[0] = std::byte{4};
  for (const int flags : {0, 1, 6, 7}) {
    content[4] = static_cast<std::byte>(flags);
    EXPECT_EQ(DecodeSuperline(content).status().code(),
              absl::StatusCode::kDataLoss)
        << flags;
  }
}

TEST(SuperlineTest, FormattedOneWasMadeFromNone) {
  Superline formatted = Example();
  formatted.configuration.made_from.reset();
  const auto decoded = DecodeSuperline(EncodeSuperline(formatted));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, formatted);
}

// A lap after the head: bytes may have been written anywhere.
RingOffset CeilingOfOlderVersions() {
  return Example().head_offset + Example().ring_capacity;
}

// All but what it was made from, which nobody knows, and the ceiling.
TEST(SuperlineTest, Version1IsRead) {
  std::vector<std::byte> content = EncodeSuperline(Example());
  content[0] = std::byte{1};
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kDataLoss);
  content.resize(432);
  EXPECT_EQ(FormatVersionOf(content), 1u);
  const auto decoded = DecodeSuperline(content);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  Superline expected = Example();
  expected.configuration.made_from.reset();
  expected.ceiling = CeilingOfOlderVersions();
  EXPECT_EQ(*decoded, expected);
}

TEST(SuperlineTest, Version2IsRead) {
  std::vector<std::byte> content = EncodeSuperline(Example());
  content[0] = std::byte{2};
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kDataLoss);
  content.resize(704);
  EXPECT_EQ(FormatVersionOf(content), 2u);
  const auto decoded = DecodeSuperline(content);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  Superline expected = Example();
  expected.ceiling = CeilingOfOlderVersions();
  EXPECT_EQ(*decoded, expected);
}

TEST(SuperlineTest, OtherVersionIsUnimplementedAndNamed) {
  std::vector<std::byte> content = EncodeSuperline(Example());
  content[0] = std::byte{5};
  const auto refused = DecodeSuperline(content);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(refused.status().message().find("version 5"),
            absl::string_view::npos);
  content[0] = std::byte{0};
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kUnimplemented);
}

// A newer version may have a longer superline; its number is read first.
TEST(SuperlineTest, OtherVersionIsSeenWhateverTheLength) {
  std::vector<std::byte> content = EncodeSuperline(Example());
  content[0] = std::byte{5};
  content.resize(1000);
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(SuperlineTest, ImpossibleContentIsDataLoss) {
  std::vector<std::byte> content = EncodeSuperline(Example());
  content.pop_back();
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(DecodeSuperline({}).status().code(), absl::StatusCode::kDataLoss);
  for (const uint32_t n : {0u, 17u, 0xffffffffu}) {
    content = EncodeSuperline(Example());
    std::memcpy(content.data() + offsetof(SuperlineFormat, replica_count), &n,
                sizeof(n));
    EXPECT_EQ(DecodeSuperline(content).status().code(),
              absl::StatusCode::kDataLoss);
  }
  for (const uint32_t n : {17u, 0xffffffffu}) {
    content = EncodeSuperline(Example());
    std::memcpy(content.data() + offsetof(SuperlineFormat, from_replica_count),
                &n, sizeof(n));
    EXPECT_EQ(DecodeSuperline(content).status().code(),
              absl::StatusCode::kDataLoss);
  }
  content = EncodeSuperline(Example());
  const uint32_t w = 4;  // of N = 3
  std::memcpy(content.data() + offsetof(SuperlineFormat, write_quorum), &w,
              sizeof(w));
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kDataLoss);
  content = EncodeSuperline(Example());
  std::memcpy(content.data() + offsetof(SuperlineFormat, from_write_quorum), &w,
              sizeof(w));  // of N = 2
  EXPECT_EQ(DecodeSuperline(content).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace alpheus
