// SPDX-License-Identifier: Apache-2.0
#include "log/core/write/pad.h"

#include <cstdint>

namespace alpheus {

RecordHeader MakePad(const Ring& ring, const EpochKey& key, Epoch epoch,
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
  return header;
}

}  // namespace alpheus
