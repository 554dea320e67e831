// SPDX-License-Identifier: Apache-2.0
// Is what an unauthenticated client says by lot really all kinds of nonsense?
#include "tools/sim/faults/malformed_requests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "recovery/protocol/messages.h"

namespace alpheus::sim {
namespace {

constexpr size_t kBytesMax = 300;
constexpr int kDraws = 2'000;

TEST(MalformedRequestsTest, BytesAreOfEveryKindAndLength) {
  const std::vector<std::byte> good =
      recovery::EncodeMessage(Uuid(), recovery::View{});
  Random random(7);
  std::set<size_t> lengths;
  int known = 0;
  int changed = 0;
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<std::byte> bytes = DrawMalformed(random, good, kBytesMax);
    ASSERT_LE(bytes.size(), kBytesMax);
    lengths.insert(bytes.size());
    known += recovery::DecodeMessage(Uuid(), bytes).ok() ? 1 : 0;
    changed += bytes.size() == good.size() && bytes != good ? 1 : 0;
  }
  EXPECT_EQ(*lengths.begin(), 0u);
  EXPECT_GT(*lengths.rbegin(), kBytesMax * 3 / 4);
  EXPECT_GT(lengths.size(), 100u);
  EXPECT_GT(changed, kDraws / 4);
  // Another message, too, now and then; nearly never one that is a message.
  EXPECT_GT(known, 0);
  EXPECT_LT(known, kDraws / 2);
}

TEST(MalformedRequestsTest, ASeedSaysTheSameAgain) {
  const std::vector<std::byte> good =
      recovery::EncodeMessage(Uuid(), recovery::Release{});
  Random one(3);
  Random other(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(DrawMalformed(one, good, kBytesMax),
              DrawMalformed(other, good, kBytesMax));
  }
}

TEST(MalformedRequestsTest, NothingMayBeSaid) {
  Random random(5);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(DrawMalformed(random, {}, kBytesMax).size(), kBytesMax);
  }
}

}  // namespace
}  // namespace alpheus::sim
