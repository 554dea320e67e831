// SPDX-License-Identifier: Apache-2.0
#include "api/store/record/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "log/base/bytes.h"
#include "log/base/random.h"

namespace alpheus::testing {
namespace {

using store::DecodedObject;
using store::Object;
using store::RequestId;
using ::testing::HasSubstr;

std::vector<std::byte> Encode(const Object& object) {
  std::vector<std::byte> bytes(EncodedBytes(object), std::byte{0xee});
  EncodeObject(object, bytes);
  return bytes;
}

std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Object WithAll() {
  return {.key = AsBytes("key"),
          .value = AsBytes("value"),
          .lap = 7,
          .expires_ns = 0x0102030405060708,
          .copied_version = 0x1112131415161718,
          .request = RequestId{0x2122232425262728, 0x3132333435363738},
          .has_sum = true};
}

// The bytes are on media.
TEST(ObjectTest, Golden) {
  EXPECT_EQ(Hex(Encode({.key = AsBytes("key"), .value = AsBytes("value")})),
            "0300000005000000"
            "6b657976616c7565");
  EXPECT_EQ(Hex(Encode({.key = AsBytes("k"), .value = {}, .is_deleted = true})),
            "0100010000000000"
            "6b00000000000000");
  EXPECT_EQ(Hex(Encode(WithAll())),
            "03001e0705000000"
            "0807060504030201"
            "1817161514131211"
            "2827262524232221"
            "3837363534333231"
            "8d67edd000000000"
            "6b657976616c7565");
}

void ExpectEqual(const Object& a, const Object& b) {
  EXPECT_EQ(AsText(a.key), AsText(b.key));
  EXPECT_EQ(AsText(a.value), AsText(b.value));
  EXPECT_EQ(a.is_deleted, b.is_deleted);
  EXPECT_EQ(a.lap, b.lap);
  EXPECT_EQ(a.expires_ns, b.expires_ns);
  EXPECT_EQ(a.copied_version, b.copied_version);
  EXPECT_EQ(a.request, b.request);
  EXPECT_EQ(a.has_sum, b.has_sum);
}

TEST(ObjectTest, DecodesWhatWasEncoded) {
  Random random(34);
  for (int i = 0; i < 2'000; ++i) {
    const std::string key(1 + random.Next() % 40, 'k');
    const std::string value(random.Next() % 300, 'v');
    Object object;
    object.key = AsBytes(key);
    object.is_deleted = random.Next() % 4 == 0;
    if (!object.is_deleted) object.value = AsBytes(value);
    object.lap = static_cast<uint8_t>(random.Next());
    if (random.Next() % 2 == 0) object.expires_ns = random.Next() >> 1;
    if (random.Next() % 2 == 0) object.copied_version = random.Next();
    if (random.Next() % 2 == 0)
      object.request = RequestId{random.Next(), random.Next()};
    object.has_sum = random.Next() % 2 == 0;
    std::vector<std::byte> bytes = Encode(object);
    EXPECT_EQ(bytes.size() % store::kObjectUnitBytes, 0U);
    bytes.resize(bytes.size() + random.Next() % 20, std::byte{0xaa});
    const auto decoded = store::DecodeObject(bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->encoded_bytes, EncodedBytes(object));
    ExpectEqual(decoded->object, object);
  }
}

// OBJ1.
TEST(ObjectTest, AnyOtherBytesAreRefused) {
  const std::vector<std::byte> whole = Encode(WithAll());
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::vector<std::byte> cut(whole.begin(),
                                     whole.begin() + static_cast<long>(bytes));
    EXPECT_EQ(store::DecodeObject(cut).status().code(),
              absl::StatusCode::kDataLoss);
  }
  const auto expect_refused = [&](size_t at, int byte, const char* why) {
    std::vector<std::byte> other = Encode(
        {.key = AsBytes("key"), .value = AsBytes("val"), .has_sum = true});
    other[at] = static_cast<std::byte>(byte);
    const auto decoded = store::DecodeObject(other);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << why;
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(why));
  };
  expect_refused(0, 0, "no key");
  expect_refused(2, 0x20, "unknown flags 32");
  expect_refused(2, 0x11, "deleted, and has a value");
  expect_refused(1, 1, "bytes, of which");
  expect_refused(12, 1, "behind its sum");
  expect_refused(22, 1, "behind its value");
}

// OBJ2.
TEST(ObjectTest, AnyChangedBitIsSeenByTheSum) {
  const std::vector<std::byte> whole = Encode(WithAll());
  EXPECT_TRUE(store::CheckSum(whole).ok());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::vector<std::byte> other = whole;
    other[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    // Some of these are no object, or say that there is no sum.
    const auto decoded = store::DecodeObject(other);
    if (!decoded.ok() || !decoded->object.has_sum) continue;
    EXPECT_EQ(
        store::CheckSum(std::span(other).first(decoded->encoded_bytes)).code(),
        absl::StatusCode::kDataLoss)
        << bit;
  }
}

}  // namespace
}  // namespace alpheus::testing
