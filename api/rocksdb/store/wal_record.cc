// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace alpheus::wal {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<std::byte, 4> kMagic = {std::byte{'A'}, std::byte{'W'},
                                             std::byte{'A'}, std::byte{'L'}};

void Store64(uint64_t value, std::byte* out) {
  std::memcpy(out, &value, sizeof(value));
}

uint64_t Load64(const std::byte* in) {
  uint64_t value = 0;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

// Returns whether this version of the kind exists.
bool IsKnown(uint8_t version, WalRecordKind kind) {
  if (version == kWalVouchingVersion || version == kWalTakenOverVersion) {
    return kind == WalRecordKind::kHome;
  }
  return version == kWalVersion && kind >= WalRecordKind::kHome &&
         kind <= WalRecordKind::kRemove;
}

bool HasBody(WalRecordKind kind) {
  return kind != WalRecordKind::kTruncate && kind != WalRecordKind::kRemove;
}

// Returns whether a record of a known kind is possible.
bool IsPossible(const WalRecord& record) {
  return record.header.file != 0 &&
         record.body.empty() != HasBody(record.header.kind);
}

const char* KindName(WalRecordKind kind) {
  switch (kind) {
    case WalRecordKind::kHome:
      return "home";
    case WalRecordKind::kCreate:
      return "create";
    case WalRecordKind::kData:
      return "data";
    case WalRecordKind::kTruncate:
      return "truncate";
    case WalRecordKind::kRename:
      return "rename";
    case WalRecordKind::kRemove:
      return "remove";
  }
  return "unknown";
}

}  // namespace

void EncodeWalHeader(const WalHeader& header,
                     std::span<std::byte, kWalHeaderBytes> out) {
  std::ranges::copy(kMagic, out.begin());
  out[4] = static_cast<std::byte>(header.version);
  out[5] = static_cast<std::byte>(header.kind);
  out[6] = out[7] = std::byte{0};
  Store64(header.file, &out[8]);
  Store64(header.offset, &out[16]);
  Store64(header.seconds, &out[24]);
}

absl::StatusOr<WalRecord> DecodeWalRecord(std::span<const std::byte> payload) {
  if (payload.size() < kWalHeaderBytes ||
      !std::ranges::equal(payload.first(kMagic.size()), kMagic)) {
    return absl::FailedPreconditionError(
        "not a record of the RocksDB plugin: this log is used for something "
        "else. Give the database a log of its own");
  }
  const auto kind = static_cast<WalRecordKind>(payload[5]);
  const auto version = static_cast<uint8_t>(payload[4]);
  if (!IsKnown(version, kind) || payload[6] != std::byte{0} ||
      payload[7] != std::byte{0}) {
    return absl::UnimplementedError(absl::StrCat(
        "record of version ", version, " and kind ",
        static_cast<int>(payload[5]),
        " of the RocksDB plugin; this one knows version 1 of kinds 1 to 6, and "
        "versions 2 and 3 of kind 1. Use the plugin that wrote it"));
  }
  const WalRecord record = {{kind, version, Load64(&payload[8]),
                             Load64(&payload[16]), Load64(&payload[24])},
                            payload.subspan(kWalHeaderBytes)};
  if (!IsPossible(record)) {
    return absl::DataLossError(
        absl::StrCat("impossible record: ", DescribeWalRecord(record)));
  }
  return record;
}

std::string DescribeWalRecord(const WalRecord& record) {
  std::string text =
      absl::StrCat(KindName(record.header.kind), " file ", record.header.file);
  if (record.header.kind == WalRecordKind::kData ||
      record.header.kind == WalRecordKind::kTruncate) {
    absl::StrAppend(&text, " at ", record.header.offset);
  }
  return absl::StrCat(text, ", ", record.body.size(), " bytes");
}

}  // namespace alpheus::wal
