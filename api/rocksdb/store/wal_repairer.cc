// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_repairer.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

// Format of RocksDB's WAL: blocks of records. A record begins with a checksum,
// a length of two bytes and a type, and stays in its block.
constexpr uint64_t kBlockBytes = 32 << 10;
constexpr uint64_t kRecordHeaderBytes = 7;
constexpr std::byte kWholeRecord{1};

constexpr uint64_t kPieceBytesMax = 64 << 10;

std::vector<std::byte> Encoded(const WalHeader& header,
                               std::span<const std::byte> body) {
  std::vector<std::byte> payload(kWalHeaderBytes);
  EncodeWalHeader(header, std::span(payload).first<kWalHeaderBytes>());
  payload.insert(payload.end(), body.begin(), body.end());
  return payload;
}

}  // namespace

std::vector<std::byte> DamagedWalBytes(uint64_t offset, size_t bytes) {
  // Also the checksum, which never matches equal bytes.
  std::vector<std::byte> damaged(bytes, std::byte{0xff});
  for (size_t at = 0; at < bytes;) {
    const uint64_t left_of_block = kBlockBytes - (offset + at) % kBlockBytes;
    const uint64_t record = std::min<uint64_t>(left_of_block, bytes - at);
    if (record >= kRecordHeaderBytes) {
      const uint64_t length = record - kRecordHeaderBytes;
      damaged[at + 4] = static_cast<std::byte>(length & 0xff);
      damaged[at + 5] = static_cast<std::byte>(length >> 8);
      damaged[at + 6] = kWholeRecord;
    }
    at += record;
  }
  return damaged;
}

absl::Status WalRepairer::Repair(std::span<const std::byte> payload,
                                 const Emit& emit) {
  const absl::StatusOr<WalRecord> decoded = DecodeWalRecord(payload);
  if (!has_begun_) is_of_the_plugin_ = decoded.ok();
  has_begun_ = true;
  if (!decoded.ok()) return emit(payload);
  const WalRecord& record = *decoded;
  const uint64_t id = record.header.file;
  if (record.header.kind == WalRecordKind::kHome) {
    next_id_ = std::max(next_id_, id);
    return emit(payload);
  }
  if (record.header.kind == WalRecordKind::kCreate) {
    if (id < next_id_) return absl::OkStatus();  // no store wrote that (WIX1)
    next_id_ = id + 1;
    sizes_[id] = 0;
    return emit(payload);
  }
  next_id_ = std::max(next_id_, id + 1);
  const auto found = sizes_.find(id);
  if (found != sizes_.end()) {
    return RepairIn(&found->second, record, payload, emit);
  }
  Drop(record);
  return absl::OkStatus();
}

absl::Status WalRepairer::RepairIn(uint64_t* size, const WalRecord& record,
                                   std::span<const std::byte> payload,
                                   const Emit& emit) {
  const WalHeader& header = record.header;
  switch (header.kind) {
    case WalRecordKind::kData:
      if (header.offset < *size) {
        // The record of its truncation is lost.
        ALPHEUS_RETURN_IF_ERROR(emit(Encoded({.kind = WalRecordKind::kTruncate,
                                              .file = header.file,
                                              .offset = header.offset},
                                             {})));
        *size = header.offset;
      }
      ALPHEUS_RETURN_IF_ERROR(Fill(header.file, size, header.offset, emit));
      *size += record.body.size();
      return emit(payload);
    case WalRecordKind::kTruncate:
      ALPHEUS_RETURN_IF_ERROR(Fill(header.file, size, header.offset, emit));
      *size = header.offset;
      return emit(payload);
    case WalRecordKind::kRemove:
      sizes_.erase(header.file);
      removed_.insert(header.file);
      return emit(payload);
    default:
      return emit(payload);
  }
}

absl::Status WalRepairer::Fill(uint64_t id, uint64_t* size, uint64_t until,
                               const Emit& emit) {
  while (*size < until) {
    const uint64_t bytes = std::min(until - *size, kPieceBytesMax);
    ALPHEUS_RETURN_IF_ERROR(emit(
        Encoded({.kind = WalRecordKind::kData, .file = id, .offset = *size},
                DamagedWalBytes(*size, bytes))));
    tally_.filled_bytes += bytes;
    *size += bytes;
  }
  return absl::OkStatus();
}

void WalRepairer::Drop(const WalRecord& record) {
  const uint64_t id = record.header.file;
  if (removed_.contains(id)) return;
  tally_.nameless.insert(id);
  tally_.dropped_bytes += record.body.size();
}

}  // namespace alpheus::wal
