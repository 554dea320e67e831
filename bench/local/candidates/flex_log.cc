// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/flex_log.h"

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "bench/harness/line_stores.h"
#include "log/base/bytes.h"
#include "log/format/checksum.h"
#include "log/format/record.h"

namespace alpheus::bench {
namespace {

uint64_t LoadTail(const std::byte* tail) {
  uint64_t value = 0;
  std::memcpy(&value, tail, sizeof(value));
  return value;
}

uint32_t Checksum(uint64_t bytes, std::span<const std::byte> payload) {
  const uint32_t crc =
      Crc32c(kCrcStart, std::as_bytes(std::span<const uint64_t, 1>(&bytes, 1)));
  return Crc32c(crc, payload);
}

absl::Status Damaged(uint64_t offset) {
  return absl::DataLossError(
      absl::StrCat("flex log: the record at offset ", offset,
                   " before the tail does not match its checksum"));
}

}  // namespace

FlexLog::FlexLog(std::span<std::byte> memory)
    : tail_on_media_(memory.data()),
      area_(memory.subspan(kLineBytes)),
      end_(LoadTail(memory.data())) {}

bool FlexLog::Append(std::span<const std::byte> payload) {
  if (!HasRoom(payload.size())) return false;
  const Header header = Seal(payload);
  StoreHeader(header);
  Fence();
  StorePayload(payload);
  Fence();
  PersistTail();
  return true;
}

void FlexLog::Clear() {
  end_ = 0;
  PersistTail();
  records_ = 0;
}

absl::StatusOr<uint64_t> FlexLog::ForEach(
    const std::function<void(std::span<const std::byte>)>& visit) const {
  const uint64_t tail = LoadTail(tail_on_media_);
  if (tail > area_.size()) return Damaged(tail);
  uint64_t count = 0;
  for (uint64_t offset = 0; offset < tail; ++count) {
    Header header{};
    if (tail - offset < sizeof(header)) return Damaged(offset);
    std::memcpy(&header, area_.data() + offset, sizeof(header));
    const uint64_t left = tail - offset - sizeof(header);
    if (header.bytes > left) return Damaged(offset);
    const std::span<const std::byte> payload =
        area_.subspan(offset + sizeof(header), header.bytes);
    if (Checksum(header.bytes, payload) != header.checksum) {
      return Damaged(offset);
    }
    visit(payload);
    offset += sizeof(header) + header.bytes;
  }
  return count;
}

absl::StatusOr<uint64_t> FlexLog::Recover(
    std::span<std::byte> memory,
    const std::function<void(std::span<const std::byte>)>& visit) {
  return FlexLog(memory).ForEach(visit);
}

bool FlexLog::HasRoom(uint64_t payload_bytes) const {
  return area_.size() - end_ >= sizeof(Header) + payload_bytes;
}

FlexLog::Header FlexLog::Seal(std::span<const std::byte> payload) {
  return {.bytes = payload.size(),
          .checksum = Checksum(payload.size(), payload),
          .reserved = 0};
}

void FlexLog::StoreHeader(const Header& header) {
  CopyAndFlush(area_.data() + end_, reinterpret_cast<const std::byte*>(&header),
               sizeof(header));
  end_ += sizeof(header);
}

void FlexLog::StorePayload(std::span<const std::byte> payload) {
  CopyAndFlush(area_.data() + end_, payload.data(), payload.size());
  end_ += payload.size();
}

void FlexLog::PersistTail() {
  auto& tail = *reinterpret_cast<uint64_t*>(tail_on_media_);
  std::atomic_ref(tail).store(end_, std::memory_order_release);
  FlushRange(tail_on_media_, sizeof(tail));
  Fence();
  ++records_;
}

}  // namespace alpheus::bench
