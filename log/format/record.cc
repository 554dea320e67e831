// SPDX-License-Identifier: Apache-2.0
#include "log/format/record.h"

#include "log/base/mix.h"
#include "log/format/checksum.h"

namespace alpheus {
namespace {

constexpr uint64_t kCleanedTag = 0x636c65616e656421u;  // "cleaned!"
constexpr size_t kHeaderCheckedBytes = offsetof(RecordHeader, header_crc);

bool TypeIsKnown(uint8_t type) {
  return type >= static_cast<uint8_t>(RecordType::kData) &&
         type <= static_cast<uint8_t>(RecordType::kAborted);
}

}  // namespace

EpochKey::EpochKey(Uuid log_id, Epoch epoch, uint64_t nonce)
    : key_(Mix(Mix(Mix(log_id.high, log_id.low), epoch.value), nonce)) {}

uint64_t CleanedWord(uint64_t seed) { return Mix(seed, kCleanedTag) | 1; }

uint32_t PayloadChecksum(uint64_t seed, uint32_t crc) {
  return crc ^ static_cast<uint32_t>(seed >> 32);
}

uint32_t HeaderChecksum(uint64_t seed, const RecordHeader& header) {
  return static_cast<uint32_t>(seed) ^
         Crc32c(
             kCrcStart,
             std::as_bytes(std::span(&header, 1)).first<kHeaderCheckedBytes>());
}

bool HeaderIsValid(uint64_t seed, const RecordHeader& header) {
  return header.magic == kRecordMagic && TypeIsKnown(header.type) &&
         header.lsn != 0 && header.header_crc == HeaderChecksum(seed, header);
}

bool PayloadIsValid(uint64_t seed, const RecordHeader& header,
                    std::span<const std::byte> payload) {
  if (header.type != static_cast<uint8_t>(RecordType::kData)) return true;
  return header.payload_crc ==
         PayloadChecksum(seed, Crc32c(kCrcStart, payload));
}

uint64_t ExtendChain(uint64_t chain, uint32_t header_crc) {
  return Mix(chain, header_crc);
}

}  // namespace alpheus
