// SPDX-License-Identifier: Apache-2.0
#include "api/service/record/service_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/bytes.h"

namespace alpheus::service {
namespace {

using Code = absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ClientId kNamed = {
    {Epoch(0x0102030405060708), Lsn(0x1112131415161718)}};

std::string Encoded(const Envelope& envelope, std::string_view body = "") {
  std::array<std::byte, kEnvelopeBytes> bytes;
  EncodeEnvelope(envelope, bytes);
  return std::string(AsText(bytes)).append(body);
}

absl::StatusOr<ServiceRecord> Decoded(std::string_view payload) {
  return DecodeServiceRecord(AsBytes(payload));
}

Envelope Of(ServiceRecordKind kind, uint64_t sequence) {
  const bool is_table =
      kind == ServiceRecordKind::kTable || kind == ServiceRecordKind::kKeys;
  const bool is_of_client = !is_table && kind != ServiceRecordKind::kOpen &&
                            kind != ServiceRecordKind::kOpenByKey;
  return {kind, is_table ? 0 : 7U, is_of_client ? kNamed : ClientId(),
          sequence};
}

// A key of these bytes: `first`, and those that follow.
ClientKey KeyFrom(int first) {
  ClientKey key;
  for (size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::byte>(first + static_cast<int>(i));
  }
  return key;
}

std::string TableText(const std::vector<TableEntry>& entries) {
  return std::string(AsText(EncodeTable(entries)));
}

// The bytes of docs/formats/service.md: what is on media stays readable.
TEST(ServiceRecordTest, BytesAreThoseOfTheFormat) {
  EXPECT_EQ(Encoded({ServiceRecordKind::kAppend, 0x21222324, kNamed,
                     0x3132333435363738},
                    "body"),
            std::string("AS\x01\x01\x24\x23\x22\x21"
                        "\x08\x07\x06\x05\x04\x03\x02\x01"
                        "\x18\x17\x16\x15\x14\x13\x12\x11"
                        "\x38\x37\x36\x35\x34\x33\x32\x31"
                        "body",
                        36));
  EXPECT_EQ(TableText({{kNamed, 0x41, {Epoch(0x42), Lsn(0x43)}, true}}),
            std::string("\x08\x07\x06\x05\x04\x03\x02\x01"
                        "\x18\x17\x16\x15\x14\x13\x12\x11"
                        "\x41\x00\x00\x00\x00\x00\x00\x00"
                        "\x42\x00\x00\x00\x00\x00\x00\x00"
                        "\x43\x00\x00\x00\x00\x00\x00\x00"
                        "\x01\x00\x00\x00\x00\x00\x00\x00",
                        48));
  EXPECT_EQ(AsText(EncodeKeys({{{kNamed, KeyFrom(0x51)}}})),
            std::string_view("\x08\x07\x06\x05\x04\x03\x02\x01"
                             "\x18\x17\x16\x15\x14\x13\x12\x11"
                             "\x51\x52\x53\x54\x55\x56\x57\x58"
                             "\x59\x5a\x5b\x5c\x5d\x5e\x5f\x60",
                             32));
  EXPECT_EQ(Encoded({.kind = ServiceRecordKind::kOpenByKey}).substr(0, 4),
            "AS\x01\x06");
  EXPECT_EQ(Encoded({.kind = ServiceRecordKind::kKeys}).substr(0, 4),
            "AS\x01\x07");
  const std::string_view one = "a";
  const std::string_view two = "bcd";
  EXPECT_EQ(AsText(EncodeBatchHead({{AsBytes(one), AsBytes(two)}})),
            std::string_view("\x02\x00\x00\x00"
                             "\x01\x00\x00\x00"
                             "\x03\x00\x00\x00",
                             12));
}

TEST(ServiceRecordTest, EveryKindIsReadBack) {
  const std::string entry(kTableEntryBytes, 'x');
  const std::string key(kKeyBytes, 'k');
  for (const auto& [kind, sequence, body] :
       std::vector<std::tuple<ServiceRecordKind, uint64_t, std::string>>{
           {ServiceRecordKind::kAppend, 1, ""},
           {ServiceRecordKind::kAppend, 1, "body"},
           {ServiceRecordKind::kBatch, ~uint64_t{0}, "body"},
           {ServiceRecordKind::kOpen, 0, ""},
           {ServiceRecordKind::kClose, 0, ""},
           {ServiceRecordKind::kClose, 9, ""},
           {ServiceRecordKind::kTable, 0, entry},
           {ServiceRecordKind::kOpenByKey, 0, key},
           {ServiceRecordKind::kKeys, 0, key + key}}) {
    const std::string payload = Encoded(Of(kind, sequence), body);
    const absl::StatusOr<ServiceRecord> record = Decoded(payload);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->envelope, Of(kind, sequence));
    EXPECT_EQ(AsText(record->body), body);
    const bool is_table =
        kind == ServiceRecordKind::kTable || kind == ServiceRecordKind::kKeys;
    EXPECT_THAT(DescribeServiceRecord(*record),
                HasSubstr(is_table ? "1 clients" : "sequence"));
  }
}

TEST(ServiceRecordTest, OtherPayloadsAreRefused) {
  const std::string good = Encoded(Of(ServiceRecordKind::kAppend, 1), "body");
  EXPECT_EQ(Decoded("").status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(Decoded(good.substr(0, kEnvelopeBytes - 1)).status().code(),
            Code::kFailedPrecondition);
  std::string other = good;
  other[1] = 'W';
  EXPECT_EQ(Decoded(other).status().code(), Code::kFailedPrecondition);
  std::string later = good;
  later[2] = 2;
  EXPECT_EQ(Decoded(later).status().code(), Code::kUnimplemented);
  for (const char kind : {'\x00', '\x08', '\xff'}) {
    std::string unknown = good;
    unknown[3] = kind;
    EXPECT_EQ(Decoded(unknown).status().code(), Code::kUnimplemented);
  }
}

TEST(ServiceRecordTest, RecordsThatNoServiceWritesAreDamage) {
  const Envelope of_nobody = {ServiceRecordKind::kAppend, 0, {}, 1};
  const Envelope tagged_table = {ServiceRecordKind::kTable, 1, {}, 0};
  const Envelope tagged_keys = {ServiceRecordKind::kKeys, 1, {}, 0};
  const Envelope named = {ServiceRecordKind::kOpen, 0, kNamed, 0};
  const std::string key(kKeyBytes, 'k');
  const std::string entry(kTableEntryBytes, 'x');
  for (const std::string& payload :
       {Encoded(of_nobody), Encoded(Of(ServiceRecordKind::kAppend, 0)),
        Encoded(Of(ServiceRecordKind::kOpen, 1)),
        Encoded(Of(ServiceRecordKind::kOpen, 0), "body"),
        Encoded(Of(ServiceRecordKind::kClose, 1), "body"),
        Encoded(Of(ServiceRecordKind::kTable, 1), entry),
        Encoded(Of(ServiceRecordKind::kTable, 0)),
        Encoded(Of(ServiceRecordKind::kTable, 0), entry + "x"),
        Encoded(tagged_table, entry), Encoded(named),
        Encoded(Of(ServiceRecordKind::kOpenByKey, 0)),
        Encoded(Of(ServiceRecordKind::kOpenByKey, 1), key),
        Encoded(Of(ServiceRecordKind::kOpenByKey, 0), key + "x"),
        Encoded(Of(ServiceRecordKind::kKeys, 1), key + key),
        Encoded(Of(ServiceRecordKind::kKeys, 0)),
        Encoded(Of(ServiceRecordKind::kKeys, 0), key),
        Encoded(tagged_keys, key + key)}) {
    EXPECT_EQ(Decoded(payload).status().code(), Code::kDataLoss)
        << Decoded(payload).status();
  }
}

TEST(ServiceRecordTest, BatchesAreReadBack) {
  const std::vector<std::string> payloads = {"one", "", "three"};
  std::vector<std::span<const std::byte>> parts;
  std::string body;
  for (const std::string& payload : payloads) parts.push_back(AsBytes(payload));
  body = AsText(EncodeBatchHead(parts));
  for (const std::string& payload : payloads) body += payload;
  const auto read = DecodeBatch(AsBytes(body));
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<std::string> texts;
  for (const auto& one : *read) texts.emplace_back(AsText(one));
  EXPECT_EQ(texts, payloads);
  // No shorter body is one, and none with a byte more.
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_EQ(DecodeBatch(AsBytes(body).first(size)).status().code(),
              Code::kDataLoss);
  }
  EXPECT_EQ(DecodeBatch(AsBytes(body + "x")).status().code(), Code::kDataLoss);
  for (const char byte : {'\x00', '\xff'}) {  // of the count
    body.replace(0, 4, 4, byte);
    EXPECT_EQ(DecodeBatch(AsBytes(body)).status().code(), Code::kDataLoss);
  }
}

TEST(ServiceRecordTest, TablesAreReadBack) {
  const std::vector<TableEntry> entries = {
      {kNamed, 4, {Epoch(5), Lsn(6)}, false},
      {{{Epoch(1), Lsn(2)}}, 0, {Epoch(7), Lsn(8)}, true}};
  std::string body = TableText(entries);
  const auto read = DecodeTable(AsBytes(body));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, entries);
  for (const size_t at : {size_t{40}, size_t{41}, size_t{47}}) {
    std::string damaged = body;
    damaged[at] = 3;
    EXPECT_EQ(DecodeTable(AsBytes(damaged)).status().code(), Code::kDataLoss);
  }
  body.replace(0, 16, 16, '\0');
  EXPECT_EQ(DecodeTable(AsBytes(body)).status().code(), Code::kDataLoss);
}

TEST(ServiceRecordTest, KeysAreReadBack) {
  const std::vector<KeyEntry> entries = {{kNamed, KeyFrom(0)},
                                         {{{Epoch(1), Lsn(2)}}, KeyFrom(0x90)}};
  std::string body(AsText(EncodeKeys(entries)));
  const auto read = DecodeKeys(AsBytes(body));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, entries);
  body.replace(kKeyEntryBytes, 16, 16, '\0');
  EXPECT_EQ(DecodeKeys(AsBytes(body)).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace alpheus::service
