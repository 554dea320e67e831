// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_record.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "api/rocksdb/store/wal_index.h"
#include "log/base/bytes.h"

namespace alpheus::wal {
namespace {

using Code = absl::StatusCode;

std::string Encoded(const WalHeader& header, std::string_view body) {
  std::array<std::byte, kWalHeaderBytes> bytes;
  EncodeWalHeader(header, bytes);
  return std::string(AsText(bytes)).append(body);
}

absl::StatusOr<WalRecord> Decoded(const std::string& payload) {
  return DecodeWalRecord(AsBytes(payload));
}

const WalHeader kData = {.kind = WalRecordKind::kData,
                         .file = 0x0102030405060708,
                         .offset = 0x1112131415161718,
                         .seconds = 0};

// The bytes of docs/use/rocksdb.md#the-records-of-the-plugin-version-3: what is
// on media stays readable.
TEST(WalRecordTest, BytesAreThoseOfTheFormat) {
  EXPECT_EQ(Encoded(kData, "body"),
            std::string("AWAL\x01\x03\x00\x00"
                        "\x08\x07\x06\x05\x04\x03\x02\x01"
                        "\x18\x17\x16\x15\x14\x13\x12\x11"
                        "\x00\x00\x00\x00\x00\x00\x00\x00"
                        "body",
                        36));
  EXPECT_EQ(Encoded({.kind = WalRecordKind::kCreate,
                     .file = 1,
                     .seconds = 0x2122232425262728},
                    "000004.log"),
            std::string("AWAL\x01\x02\x00\x00"
                        "\x01\x00\x00\x00\x00\x00\x00\x00"
                        "\x00\x00\x00\x00\x00\x00\x00\x00"
                        "\x28\x27\x26\x25\x24\x23\x22\x21"
                        "000004.log",
                        42));
}

TEST(WalRecordTest, EveryKindIsReadBack) {
  for (int kind = 1; kind <= 6; ++kind) {
    const bool has_body = kind != 4 && kind != 6;
    WalHeader header = kData;
    header.kind = static_cast<WalRecordKind>(kind);
    header.seconds = 77;
    const std::string payload = Encoded(header, has_body ? "x" : "");
    const auto record = Decoded(payload);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->header.kind, header.kind);
    EXPECT_EQ(record->header.file, header.file);
    EXPECT_EQ(record->header.offset, header.offset);
    EXPECT_EQ(record->header.seconds, 77u);
    EXPECT_EQ(AsText(record->body), has_body ? "x" : "");
  }
}

TEST(WalRecordTest, RecordsOfOthersAreRefused) {
  for (const std::string& payload :
       {std::string(), std::string("AWAL"), std::string(64, 'x')}) {
    EXPECT_EQ(Decoded(payload).status().code(), Code::kFailedPrecondition);
  }
}

// docs/use/rocksdb.md#vouching.
TEST(WalRecordTest, HomeThatVouchesHasAVersionOfItsOwn) {
  const WalHeader header = {
      .kind = WalRecordKind::kHome, .version = kWalVouchingVersion, .file = 9};
  const std::string body = EncodeWalHome({"/wal", "/db"}, {"id", 12});
  const std::string payload = Encoded(header, body);
  EXPECT_EQ(payload, std::string("AWAL\x02\x01\x00\x00"
                                 "\x09\x00\x00\x00\x00\x00\x00\x00"
                                 "\x00\x00\x00\x00\x00\x00\x00\x00"
                                 "\x00\x00\x00\x00\x00\x00\x00\x00"
                                 "/wal\0/db\0id\0"
                                 "12",
                                 46));
  WalIndex index;
  ASSERT_TRUE(index.Apply(Lsn(1), 0, *Decoded(payload)).ok());
  EXPECT_EQ(index.home(), (WalHome{"/wal", "/db"}));
  EXPECT_EQ(index.vouch(), (WalVouch{"id", 12}));
  for (const std::string& broken :
       {EncodeWalHome({"/wal", "/db"}), EncodeWalHome({"/wal", "/db"}, {"", 1}),
        body + "x"}) {
    const std::string bad = Encoded(header, broken);
    EXPECT_EQ(index.Apply(Lsn(2), 0, *Decoded(bad)).code(), Code::kDataLoss);
  }
}

// docs/use/rocksdb.md#fail-over.
TEST(WalRecordTest, HomeThatWasTakenOverSaysWhatWasLeft) {
  const WalHeader header = {
      .kind = WalRecordKind::kHome, .version = kWalTakenOverVersion, .file = 9};
  const WalLeft left = {"/old", {"was", 7}};
  const std::string body = EncodeWalHome({"/wal", "/db"}, {"id", 12}, left);
  const std::string payload = Encoded(header, body);
  EXPECT_EQ(payload, std::string("AWAL\x03\x01\x00\x00"
                                 "\x09\x00\x00\x00\x00\x00\x00\x00"
                                 "\x00\x00\x00\x00\x00\x00\x00\x00"
                                 "\x00\x00\x00\x00\x00\x00\x00\x00"
                                 "/wal\0/db\0id\0"
                                 "12\0/old\0was\0"
                                 "7",
                                 57));
  WalIndex index;
  ASSERT_TRUE(index.Apply(Lsn(1), 0, *Decoded(payload)).ok());
  EXPECT_EQ(index.home(), (WalHome{"/wal", "/db"}));
  EXPECT_EQ(index.vouch(), (WalVouch{"id", 12}));
  EXPECT_EQ(index.left(), left);
  for (const std::string& broken :
       {EncodeWalHome({"/wal", "/db"}, {"id", 1}),
        EncodeWalHome({"/wal", "/db"}, {"id", 1}, {"", {"was", 7}}), body + "x",
        EncodeWalHome({"/wal", "/db"}) + std::string("\0id\0x\0/o\0w\0", 11) +
            "1"}) {
    const std::string bad = Encoded(header, broken);
    EXPECT_EQ(index.Apply(Lsn(2), 0, *Decoded(bad)).code(), Code::kDataLoss);
  }
  // One that does not vouch yet can be taken over, too.
  const std::string unvouched =
      Encoded(header, EncodeWalHome({"", "/db"}, {}, {"/old", {}}));
  ASSERT_TRUE(index.Apply(Lsn(2), 0, *Decoded(unvouched)).ok());
  EXPECT_EQ(index.vouch(), WalVouch());
  EXPECT_EQ(index.left(), (WalLeft{"/old", {}}));
  // An older version says that nothing was left.
  const std::string older = Encoded({.kind = WalRecordKind::kHome, .file = 9},
                                    EncodeWalHome({"/wal", "/db"}));
  ASSERT_TRUE(index.Apply(Lsn(3), 0, *Decoded(older)).ok());
  EXPECT_EQ(index.left(), WalLeft());
}

// A later version may mean anything.
TEST(WalRecordTest, LaterVersionsAndKindsAreUnimplemented) {
  for (const size_t at : {4, 5, 6, 7}) {
    std::string payload = Encoded(kData, "body");
    payload[at] = 7;
    EXPECT_EQ(Decoded(payload).status().code(), Code::kUnimplemented) << at;
  }
  std::string payload = Encoded(kData, "body");
  payload[5] = 0;
  EXPECT_EQ(Decoded(payload).status().code(), Code::kUnimplemented);
  // Only a home has a second one, and a third.
  for (const char version : {2, 3}) {
    payload = Encoded(kData, "body");
    payload[4] = version;
    EXPECT_EQ(Decoded(payload).status().code(), Code::kUnimplemented);
  }
}

TEST(WalRecordTest, ImpossibleRecordsAreDamage) {
  WalHeader header = kData;
  EXPECT_EQ(Decoded(Encoded(header, "")).status().code(), Code::kDataLoss);
  header.file = 0;
  EXPECT_EQ(Decoded(Encoded(header, "x")).status().code(), Code::kDataLoss);
  header = {.kind = WalRecordKind::kRemove, .file = 1};
  EXPECT_EQ(Decoded(Encoded(header, "x")).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace alpheus::wal
