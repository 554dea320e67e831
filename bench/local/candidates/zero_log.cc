// SPDX-License-Identifier: Apache-2.0
#include "bench/local/candidates/zero_log.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bench/harness/line_stores.h"
#include "bench/local/candidates/ones.h"
#include "log/base/bytes.h"

namespace alpheus::bench {
namespace {

uint64_t RecordSize(uint64_t payload_bytes) {
  return RoundUp(sizeof(ZeroLog::Header) + payload_bytes, kLineBytes);
}

uint64_t OnesOf(uint64_t lsn, std::span<const std::byte> payload) {
  return static_cast<uint64_t>(std::popcount(lsn)) +
         static_cast<uint64_t>(std::popcount(payload.size())) +
         CountOnes(payload);
}

// The payload of the record at `offset`; false if it is not whole.
bool Read(std::span<const std::byte> area, uint64_t offset, uint64_t lsn,
          std::span<const std::byte>* payload) {
  ZeroLog::Header header{};
  if (area.size() - offset < sizeof(header)) return false;
  std::memcpy(&header, area.data() + offset, sizeof(header));
  if (header.ones == 0 || header.lsn != lsn) return false;
  if (header.bytes > area.size() - offset - sizeof(header)) return false;
  *payload = area.subspan(offset + sizeof(header), header.bytes);
  return OnesOf(lsn, *payload) == header.ones;
}

struct End {
  uint64_t offset = 0;
  uint64_t records = 0;
};

// Visits all records up to the first that is not whole.
template <class Visit>
End Scan(std::span<const std::byte> area, const Visit& visit) {
  End end;
  std::span<const std::byte> payload;
  while (Read(area, end.offset, end.records + 1, &payload)) {
    visit(payload);
    end.offset += RecordSize(payload.size());
    ++end.records;
  }
  return end;
}

}  // namespace

ZeroLog::ZeroLog(std::span<std::byte> memory) : area_(memory) {
  const End end = Scan(area_, [](std::span<const std::byte>) {});
  end_ = end.offset;
  next_lsn_ = end.records + 1;
}

bool ZeroLog::Append(std::span<const std::byte> payload) {
  if (!HasRoom(payload.size())) return false;
  Store(Seal(payload), payload);
  Fence();
  return true;
}

void ZeroLog::Clear() {
  static constexpr Line kZeros = {};
  static const StoreLines store = WidestNt();
  for (uint64_t offset = 0; offset < end_; offset += kLineBytes) {
    store(area_.data() + offset, &kZeros, 1);
  }
  Fence();
  end_ = 0;
  next_lsn_ = 1;
}

uint64_t ZeroLog::ForEach(
    const std::function<void(std::span<const std::byte>)>& visit) const {
  return Scan(area_, visit).records;
}

absl::StatusOr<uint64_t> ZeroLog::Recover(
    std::span<std::byte> memory,
    const std::function<void(std::span<const std::byte>)>& visit) {
  return Scan(memory, visit).records;
}

bool ZeroLog::HasRoom(uint64_t payload_bytes) const {
  return area_.size() - end_ >= RecordSize(payload_bytes);
}

ZeroLog::Header ZeroLog::Seal(std::span<const std::byte> payload) const {
  return {.lsn = next_lsn_,
          .bytes = static_cast<uint32_t>(payload.size()),
          .ones = static_cast<uint32_t>(OnesOf(next_lsn_, payload))};
}

void ZeroLog::Store(const Header& header, std::span<const std::byte> payload) {
  static const StoreLines store = WidestNt();
  std::byte* const to = area_.data() + end_;
  // Every line is stored once and whole: the first and the last are put
  // together here.
  Line first = {};
  const uint64_t in_first =
      std::min<uint64_t>(payload.size(), kLineBytes - sizeof(header));
  std::memcpy(first.bytes, &header, sizeof(header));
  if (in_first != 0) {  // an empty payload may be at null
    std::memcpy(first.bytes + sizeof(header), payload.data(), in_first);
  }
  store(to, &first, 1);
  const uint64_t lines = (payload.size() - in_first) / kLineBytes;
  const uint64_t stored = in_first + lines * kLineBytes;
  if (lines != 0) store(to + kLineBytes, payload.data() + in_first, lines);
  if (stored < payload.size()) {
    Line last = {};
    std::memcpy(last.bytes, payload.data() + stored, payload.size() - stored);
    store(to + (1 + lines) * kLineBytes, &last, 1);
  }
  end_ += RecordSize(payload.size());
  ++next_lsn_;
}

}  // namespace alpheus::bench
