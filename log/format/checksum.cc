// SPDX-License-Identifier: Apache-2.0
#include "log/format/checksum.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace alpheus::internal {

uint32_t Crc32cLong(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L counts in int, and takes a mutable pointer that it does not write to.
  constexpr size_t kChunkBytes = size_t{1} << 30;
  while (!bytes.empty()) {
    const size_t chunk = std::min(bytes.size(), kChunkBytes);
    crc = crc32_iscsi(
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data())),
        static_cast<int>(chunk), crc);
    bytes = bytes.subspan(chunk);
  }
  return crc;
}

}  // namespace alpheus::internal
