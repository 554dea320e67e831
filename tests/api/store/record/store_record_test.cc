// SPDX-License-Identifier: Apache-2.0
#include "api/store/record/store_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "log/base/bytes.h"

namespace alpheus::testing {
namespace {

using store::DecodedObject;
using store::kStoreRecordHeaderBytes;
using store::Object;
using store::StoreRecordHeader;
using store::StoreRecordKind;
using ::testing::HasSubstr;

std::vector<std::byte> RecordOf(const StoreRecordHeader& header,
                                const std::vector<Object>& objects) {
  std::vector<std::byte> bytes(kStoreRecordHeaderBytes);
  EncodeStoreRecordHeader(header,
                          std::span(bytes).first<kStoreRecordHeaderBytes>());
  for (const Object& object : objects) {
    const size_t at = bytes.size();
    bytes.resize(at + EncodedBytes(object));
    EncodeObject(object, std::span(bytes).subspan(at));
  }
  return bytes;
}

std::vector<Object> TwoObjects() {
  return {{.key = AsBytes("a"), .value = AsBytes("one")},
          {.key = AsBytes("b"), .value = {}, .is_deleted = true}};
}

// The bytes are on media.
TEST(StoreRecordTest, Golden) {
  const auto bytes = RecordOf({.count = 2, .time_ns = 0x0102030405060708}, {});
  EXPECT_EQ(absl::BytesToHexString(
                {reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
            "414f010102000000"
            "0807060504030201");
}

TEST(StoreRecordTest, ObjectsComeBackWithTheirOffsets) {
  const auto bytes = RecordOf({.count = 2, .time_ns = 5}, TwoObjects());
  const auto header = store::DecodeStoreRecordHeader(bytes);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(*header, (StoreRecordHeader{StoreRecordKind::kObjects, 2, 5}));
  std::vector<size_t> offsets;
  std::string keys;
  const absl::Status all = store::ForEachObject(
      bytes, header->count, [&](size_t offset, const DecodedObject& decoded) {
        offsets.push_back(offset);
        keys += AsText(decoded.object.key);
        return absl::OkStatus();
      });
  EXPECT_TRUE(all.ok()) << all;
  EXPECT_EQ(offsets, (std::vector<size_t>{16, 32}));
  EXPECT_EQ(keys, "ab");
}

TEST(StoreRecordTest, ErrorOfAVisitEndsIt) {
  const auto bytes = RecordOf({.count = 2}, TwoObjects());
  int visits = 0;
  const absl::Status all = store::ForEachObject(
      bytes, 2, [&](size_t /*offset*/, const DecodedObject& /*object*/) {
        ++visits;
        return absl::AbortedError("enough");
      });
  EXPECT_EQ(all, absl::AbortedError("enough"));
  EXPECT_EQ(visits, 1);
}

TEST(StoreRecordTest, OtherPayloadsAreRefused) {
  const auto code_of = [](std::vector<std::byte> bytes) {
    return store::DecodeStoreRecordHeader(bytes).status().code();
  };
  const auto good = RecordOf({.count = 2}, TwoObjects());
  EXPECT_EQ(code_of({}), absl::StatusCode::kFailedPrecondition);
  auto other = good;
  other[0] = std::byte{'B'};
  EXPECT_EQ(code_of(other), absl::StatusCode::kFailedPrecondition);
  other = good;
  other[2] = std::byte{2};
  EXPECT_EQ(code_of(other), absl::StatusCode::kUnimplemented);
  other = good;
  other[3] = std::byte{3};
  EXPECT_EQ(code_of(other), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code_of(RecordOf({.count = 0}, TwoObjects())),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(code_of(RecordOf({.count = 1}, {})), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code_of(RecordOf({.kind = StoreRecordKind::kTime, .count = 1}, {})),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(code_of(RecordOf({.kind = StoreRecordKind::kTime}, TwoObjects())),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(code_of(RecordOf({.kind = StoreRecordKind::kTime}, {})),
            absl::StatusCode::kOk);
}

TEST(StoreRecordTest, CountThatDoesNotFitIsRefused) {
  const auto bytes = RecordOf({.count = 2}, TwoObjects());
  const auto nothing = [](size_t /*offset*/, const DecodedObject& /*object*/) {
    return absl::OkStatus();
  };
  const absl::Status fewer = store::ForEachObject(bytes, 1, nothing);
  EXPECT_EQ(fewer.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(fewer.message()),
              HasSubstr("16 bytes behind the last of 1 objects"));
  EXPECT_EQ(store::ForEachObject(bytes, 3, nothing).code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace alpheus::testing
