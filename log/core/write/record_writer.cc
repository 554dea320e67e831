// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/record_writer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <climits>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/base/attributes.h"
#include "log/base/bytes.h"
#include "log/core/write/pad.h"
#include "log/format/checksum.h"
#include "log/pmem/backends.h"

namespace alpheus {
namespace {

template <Persistence P>
void StoreHeader(P& pmem, std::byte* to, const RecordHeader& header) {
  constexpr size_t kPublishOffset = offsetof(RecordHeader, payload_crc);
  // The cleaned word of the last lap must be gone before this lap's record can
  // be seen. It would mean nothing here (other seed), but a zero keeps "not
  // cleaned" one value.
  pmem.Store8(reinterpret_cast<uint64_t*>(to + offsetof(RecordHeader, cleaned)),
              0);
  auto* const publish = reinterpret_cast<uint64_t*>(to + kPublishOffset);
  pmem.Copy(to, &header, kPublishOffset);
  pmem.Store8(publish, PublishWord(header));
}

uint64_t LoadWord(const std::byte* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Loads less than a line, filled up with zeros. Requires: the word before
// `from` is readable. Every word stays in a register: wide loads stall on a
// line that narrow stores have put together in memory.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline LineWords LoadTail(const std::byte* from,
                                                       size_t bytes) {
  constexpr size_t kWordBytes = sizeof(uint64_t);
  const size_t whole = bytes / kWordBytes;
  uint64_t rest = 0;
  if (const size_t odd = bytes % kWordBytes; odd != 0) {
    rest = LoadWord(from + bytes - kWordBytes) >> (kWordBytes - odd) * CHAR_BIT;
  }
  LineWords line{};
#pragma GCC unroll 8
  for (size_t i = 0; i < std::size(line.word); ++i) {
    if (i < whole) {
      line.word[i] = LoadWord(from + i * kWordBytes);
    } else {
      line.word[i] = std::exchange(rest, 0);
    }
  }
  return line;
}

// Words of its line that a header leaves to the payload.
constexpr size_t kWordsBesideHeader =
    (kLineBytes - kRecordHeaderBytes) / sizeof(uint64_t);
static_assert(kWordsBesideHeader == 2);
struct WordsBesideHeader {
  uint64_t word[kWordsBesideHeader];
};

// Returns the first bytes of a payload that is one range. Stores the following
// lines past the cache to `to`, each once and whole: two partial stores to one
// line cost nearly twice (docs/design/architecture.md#the-cost-of-a-record).
template <Persistence P>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline WordsBesideHeader StoreRange(
    P& pmem, std::byte* to, std::span<const std::byte> range) {
  constexpr size_t kFirstBytes = sizeof(WordsBesideHeader);
  const std::byte* from = range.data();
  size_t left = range.size();
  WordsBesideHeader first{};
  if (left < kFirstBytes) {
    if (left != 0) std::memcpy(&first, from, left);
    return first;
  }
  first = {{LoadWord(from), LoadWord(from + sizeof(uint64_t))}};
  from += kFirstBytes;
  left -= kFirstBytes;
  if (const size_t lines = left / kLineBytes; lines != 0) {
    pmem.CopyLinesNt(to, from, lines);
    to += lines * kLineBytes;
    from += lines * kLineBytes;
    left -= lines * kLineBytes;
  }
  if (left != 0) pmem.StoreLineNt(to, LoadTail(from, left));
  return first;
}

// Does the same for several ranges, which are gathered line by line.
template <Persistence P>
WordsBesideHeader StoreParts(P& pmem, std::byte* to, const Payload& payload) {
  constexpr size_t kFirstBytes = sizeof(WordsBesideHeader);
  WordsBesideHeader first{};
  alignas(kLineBytes) std::byte line[kLineBytes] = {};
  size_t filled = kLineBytes - kFirstBytes;  // the header's share of line one
  bool is_first = true;
  const auto emit = [&] {
    if (is_first) {
      std::memcpy(&first, line + kLineBytes - kFirstBytes, kFirstBytes);
      is_first = false;
    } else {
      pmem.CopyLinesNt(to, line, 1);
      to += kLineBytes;
    }
    std::memset(line, 0, kLineBytes);
    filled = 0;
  };
  for (std::span<const std::byte> part : payload.parts) {
    while (!part.empty()) {
      const size_t n = std::min(part.size(), kLineBytes - filled);
      std::memcpy(line + filled, part.data(), n);
      filled += n;
      part = part.subspan(n);
      if (filled == kLineBytes) emit();
    }
  }
  if (filled != 0 || is_first) emit();
  return first;
}

}  // namespace

template <Persistence P>
void WritePad(P& pmem, const Ring& ring, const EpochKey& key, Epoch epoch,
              Lsn next_lsn, Lsn durable_lsn, RingOffset begin) {
  StoreHeader(pmem, ring.At(begin),
              MakePad(ring, key, epoch, next_lsn, durable_lsn, begin));
}

template <Persistence P>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline RecordHeader RecordWriter<P>::MakeHeader(
    Lsn lsn, RingOffset offset, RecordType type, uint64_t payload_bytes,
    uint32_t payload_crc, Lsn durable_lsn) const {
  const uint64_t seed = key_.Seed(lsn, offset);
  RecordHeader header{};
  header.lsn = lsn.value;
  header.epoch = epoch_.value;
  header.durable_lsn = durable_lsn.value;
  header.payload_bytes = static_cast<uint32_t>(payload_bytes);
  header.magic = kRecordMagic;
  header.type = static_cast<uint8_t>(type);
  if (type == RecordType::kData) {
    header.payload_crc = PayloadChecksum(seed, payload_crc);
  }
  header.header_crc = HeaderChecksum(seed, header);
  return header;
}

template <Persistence P>
void RecordWriter<P>::Copy(ReservedRecord& record, size_t offset,
                           std::span<const std::byte> bytes, bool is_owner) {
  if (bytes.empty()) return;
  pmem_.Copy(record.payload + offset, bytes.data(), bytes.size());
  if (!is_owner) {
    // Relaxed: the user orders all copies before complete.
    std::atomic_ref(record.filled_by_others)
        .store(true, std::memory_order_relaxed);
    return;
  }
  if (offset != record.copied_bytes) {
    record.filled_in_place = true;
    return;
  }
  if (offset == 0) {
    record.copied_crc = kCrcStart;
  }
  record.copied_crc = Crc32c(record.copied_crc, bytes);
  record.copied_bytes += bytes.size();
}

template <Persistence P>
uint32_t RecordWriter<P>::Seal(const ReservedRecord& record, RecordType type,
                               Lsn durable_lsn) {
  WritePadBefore(record.lsn, record.begin, record.offset, durable_lsn);
  uint32_t crc = 0;
  if (type == RecordType::kData) {
    const bool carried = !record.filled_in_place && !record.filled_by_others &&
                         record.payload_bytes != 0 &&
                         record.copied_bytes == record.payload_bytes;
    crc = carried ? record.copied_crc
                  : Crc32c(kCrcStart, {record.payload, record.payload_bytes});
  }
  const RecordHeader header = MakeHeader(
      record.lsn, record.offset, type, record.payload_bytes, crc, durable_lsn);
  StoreHeader(pmem_, ring_.At(record.offset), header);
  return header.header_crc;
}

template <Persistence P>
uint32_t RecordWriter<P>::WriteWhole(const Reserver::Space& space,
                                     const Payload& payload, Lsn durable_lsn) {
  std::byte* const to = ring_.At(space.offset);
  const WordsBesideHeader first =
      payload.parts.size() == 1
          ? StoreRange(pmem_, to + kLineBytes, payload.parts.front())
          : StoreParts(pmem_, to + kLineBytes, payload);
  const RecordHeader header =
      MakeHeader(space.lsn, space.offset, RecordType::kData, payload.bytes,
                 payload.crc, durable_lsn);
  pmem_.StoreLineNt(to, {{header.lsn, header.epoch, header.durable_lsn,
                          LengthAndTypeWord(header), PublishWord(header),
                          header.cleaned, first.word[0], first.word[1]}});
  if (WritePadBefore(space.lsn, space.begin, space.offset, durable_lsn)) {
    pmem_.Flush(ring_.At(space.begin), kRecordHeaderBytes);
  }
  return header.header_crc;
}

template <Persistence P>
uint32_t RecordWriter<P>::WriteCached(const Reserver::Space& space,
                                      const Payload& payload, Lsn durable_lsn) {
  WritePadBefore(space.lsn, space.begin, space.offset, durable_lsn);
  std::byte* const header_at = ring_.At(space.offset);
  std::byte* to = header_at + kRecordHeaderBytes;
  for (const auto& part : payload.parts) {
    if (part.empty()) continue;
    pmem_.Copy(to, part.data(), part.size());
    to += part.size();
  }
  const RecordHeader header =
      MakeHeader(space.lsn, space.offset, RecordType::kData, payload.bytes,
                 payload.crc, durable_lsn);
  StoreHeader(pmem_, header_at, header);
  return header.header_crc;
}

template <Persistence P>
bool RecordWriter<P>::WritePadBefore(Lsn lsn, RingOffset begin,
                                     RingOffset offset, Lsn durable_lsn) {
  if (begin == offset) [[likely]]
    return false;
  WritePad(pmem_, ring_, key_, epoch_, lsn, durable_lsn, begin);
  return true;
}

#define ALPHEUS_INSTANTIATE(P)                                                 \
  template void WritePad<P>(P&, const Ring&, const EpochKey&, Epoch, Lsn, Lsn, \
                            RingOffset);                                       \
  template class RecordWriter<P>
ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);
#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
