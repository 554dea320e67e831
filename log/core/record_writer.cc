// SPDX-License-Identifier: Apache-2.0
#include "log/core/record_writer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "log/base/bytes.h"
#include "log/format/checksum.h"
#include "log/pmem/crash_model.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"

namespace alpheus {
namespace {

// Both checksums as the one word that publishes the record.
uint64_t PublishWord(const RecordHeader& header) {
  uint64_t word = 0;
  static_assert(offsetof(RecordHeader, payload_crc) % 8 == 0);
  std::memcpy(&word, &header.payload_crc, sizeof(word));
  return word;
}

template <Persistence P>
void StoreHeader(P& pmem, std::byte* to, const RecordHeader& header) {
  constexpr size_t kPublishOffset = offsetof(RecordHeader, payload_crc);
  // The cleaned word of the last lap must be gone before this lap's record
  // can be seen; it would mean nothing here (other seed), but a zero keeps
  // "not cleaned" one value.
  pmem.Store8(reinterpret_cast<uint64_t*>(to + offsetof(RecordHeader, cleaned)),
              0);
  pmem.Copy(to, &header, kPublishOffset);
  pmem.Store8(reinterpret_cast<uint64_t*>(to + kPublishOffset),
              PublishWord(header));
}

// Fills whole lines from a list of byte ranges; full lines inside one range
// are passed on without a copy.
class LineAssembler {
 public:
  explicit LineAssembler(std::span<const std::span<const std::byte>> parts)
      : parts_(parts) {}

  // Copies up to `bytes` into `to`; returns how many there were.
  size_t Take(std::byte* to, size_t bytes) {
    size_t taken = 0;
    while (taken < bytes && Skip()) {
      const size_t n =
          std::min(bytes - taken, parts_.front().size() - consumed_);
      std::memcpy(to + taken, parts_.front().data() + consumed_, n);
      consumed_ += n;
      taken += n;
    }
    return taken;
  }

  // The whole lines that lie together at the front of the current range.
  std::span<const std::byte> TakeWholeLines() {
    if (!Skip()) return {};
    const size_t bytes =
        RoundDown(parts_.front().size() - consumed_, kLineBytes);
    const auto lines = parts_.front().subspan(consumed_, bytes);
    consumed_ += bytes;
    return lines;
  }

 private:
  // Moves to the next range that has bytes left; false if there is none.
  bool Skip() {
    while (!parts_.empty() && consumed_ == parts_.front().size()) {
      parts_ = parts_.subspan(1);
      consumed_ = 0;
    }
    return !parts_.empty();
  }

  std::span<const std::span<const std::byte>> parts_;
  size_t consumed_ = 0;  // of parts_.front()
};

}  // namespace

template <Persistence P>
void WritePad(P& pmem, const Ring& ring, const EpochKey& key, Epoch epoch,
              Lsn next_lsn, Lsn durable_lsn, RingOffset begin) {
  RecordHeader header{};
  header.lsn = next_lsn.value;
  header.epoch = epoch.value;
  header.durable_lsn = durable_lsn.value;
  header.payload_bytes =
      static_cast<uint32_t>(ring.UntilEnd(begin) - kRecordHeaderBytes);
  header.magic = kRecordMagic;
  header.type = static_cast<uint8_t>(RecordType::kPad);
  header.header_crc = HeaderChecksum(key.Seed(next_lsn, begin), header);
  StoreHeader(pmem, ring.At(begin), header);
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
void RecordWriter<P>::Seal(const ReservedRecord& record, RecordType type,
                           Lsn durable_lsn) {
  WritePadBefore(record, durable_lsn);
  const uint64_t seed = key_.Seed(record.lsn, record.offset);
  uint32_t payload_crc = 0;
  if (type == RecordType::kData) {
    const bool carried = !record.filled_in_place && !record.filled_by_others &&
                         record.payload_bytes != 0 &&
                         record.copied_bytes == record.payload_bytes;
    payload_crc = PayloadChecksum(
        seed, carried
                  ? record.copied_crc
                  : Crc32c(kCrcStart, {record.payload, record.payload_bytes}));
  }
  StoreHeader(pmem_, ring_.At(record.offset),
              MakeHeader(record, type, payload_crc, seed, durable_lsn));
}

template <Persistence P>
void RecordWriter<P>::WriteWhole(
    const ReservedRecord& record,
    std::span<const std::span<const std::byte>> parts, Lsn durable_lsn) {
  if (WritePadBefore(record, durable_lsn)) {
    pmem_.Flush(ring_.At(record.begin), kRecordHeaderBytes);
  }
  const uint64_t seed = key_.Seed(record.lsn, record.offset);
  uint32_t crc = kCrcStart;
  for (const auto& part : parts) crc = Crc32c(crc, part);
  const RecordHeader header = MakeHeader(
      record, RecordType::kData, PayloadChecksum(seed, crc), seed, durable_lsn);

  // Every line is stored once and whole: two partial stores to one line cost
  // nearly twice (docs/performance.md).
  alignas(kLineBytes) std::byte line[kLineBytes];
  std::memcpy(line, &header, kRecordHeaderBytes);
  LineAssembler source(parts);
  size_t filled =
      kRecordHeaderBytes +
      source.Take(line + kRecordHeaderBytes, kLineBytes - kRecordHeaderBytes);
  std::byte* to = ring_.At(record.offset);
  for (;;) {
    std::memset(line + filled, 0, kLineBytes - filled);
    pmem_.CopyLinesNt(to, line, 1);
    to += kLineBytes;
    const std::span<const std::byte> lines = source.TakeWholeLines();
    if (!lines.empty()) {
      pmem_.CopyLinesNt(to, lines.data(), lines.size() / kLineBytes);
      to += lines.size();
    }
    filled = source.Take(line, kLineBytes);
    if (filled == 0) return;
  }
}

template <Persistence P>
RecordHeader RecordWriter<P>::MakeHeader(const ReservedRecord& record,
                                         RecordType type, uint32_t payload_crc,
                                         uint64_t seed, Lsn durable_lsn) const {
  RecordHeader header{};
  header.lsn = record.lsn.value;
  header.epoch = epoch_.value;
  header.durable_lsn = durable_lsn.value;
  header.payload_bytes = static_cast<uint32_t>(record.payload_bytes);
  header.magic = kRecordMagic;
  header.type = static_cast<uint8_t>(type);
  header.payload_crc = payload_crc;
  header.header_crc = HeaderChecksum(seed, header);
  return header;
}

template <Persistence P>
bool RecordWriter<P>::WritePadBefore(const ReservedRecord& record,
                                     Lsn durable_lsn) {
  if (record.begin == record.offset) return false;
  WritePad(pmem_, ring_, key_, epoch_, record.lsn, durable_lsn, record.begin);
  return true;
}

#define ALPHEUS_INSTANTIATE(P)                                                 \
  template void WritePad<P>(P&, const Ring&, const EpochKey&, Epoch, Lsn, Lsn, \
                            RingOffset);                                       \
  template class RecordWriter<P>
ALPHEUS_INSTANTIATE(LibpmemPersistence);
ALPHEUS_INSTANTIATE(MsyncPersistence);
ALPHEUS_INSTANTIATE(ModelPersistence);
#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
