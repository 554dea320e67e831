// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/checksum_pass.h"

#include "log/format/checksum.h"
#include "log/format/record.h"

namespace alpheus::bench {

PassResult ChecksumPass(std::span<const std::byte> ring) {
  constexpr uint64_t kSummedBytes = offsetof(RecordHeader, header_crc);
  PassResult result;
  for (uint64_t offset = 0; ring.size() - offset >= kRecordHeaderBytes;
       ++result.records) {
    const std::byte* const place = ring.data() + offset;
    const auto& header = *reinterpret_cast<const RecordHeader*>(place);
    if (header.magic != kRecordMagic) break;
    if (RecordBytes(header.payload_bytes) > ring.size() - offset) break;
    result.sum += Crc32c(kCrcStart, {place, kSummedBytes});
    result.sum +=
        Crc32c(kCrcStart, {place + kRecordHeaderBytes, header.payload_bytes});
    offset += RecordBytes(header.payload_bytes);
  }
  return result;
}

}  // namespace alpheus::bench
