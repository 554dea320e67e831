// SPDX-License-Identifier: Apache-2.0
#include "log/format/sealed.h"

#include <gtest/gtest.h>

#include <cstring>

#include "log/base/bytes.h"

namespace alpheus {
namespace {

std::vector<std::byte> SealedBytes(uint64_t identity, std::string_view text) {
  const SealedHeader header = Seal(identity, AsBytes(text));
  std::vector<std::byte> place(kSealedHeaderBytes + text.size());
  std::memcpy(place.data(), &header, sizeof(header));
  std::memcpy(place.data() + sizeof(header), text.data(), text.size());
  return place;
}

TEST(SealedTest, WholeBytesAreReturned) {
  const auto data = Unseal(5, SealedBytes(5, "content"));
  ASSERT_TRUE(data.has_value());
  EXPECT_EQ(AsText(*data), "content");
}

TEST(SealedTest, EveryFlippedBitIsSeen) {
  std::vector<std::byte> place = SealedBytes(5, "content");
  for (size_t bit = 0; bit < 8 * place.size(); ++bit) {
    place[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(Unseal(5, place).has_value()) << "bit " << bit;
    place[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  }
}

TEST(SealedTest, OtherIdentityZerosAndShortPlacesAreRefused) {
  const std::vector<std::byte> place = SealedBytes(5, "content");
  EXPECT_FALSE(Unseal(6, place).has_value());
  for (size_t bytes = 0; bytes < place.size(); ++bytes) {
    EXPECT_FALSE(Unseal(5, std::span(place).first(bytes)).has_value());
  }
  EXPECT_FALSE(Unseal(5, std::vector<std::byte>(100)).has_value());
}

}  // namespace
}  // namespace alpheus
