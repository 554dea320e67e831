// SPDX-License-Identifier: Apache-2.0
// checksum: seeded CRC32C, the integrity check of everything on media.
//
// The seed takes the place of the usual initial value, so that equal bytes in
// another log, epoch, place or copy have another checksum (L2, L3). Runs of
// bytes chain: Crc32c(Crc32c(s, a), b) == Crc32c(s, a + b).
//
// Thread safety: pure functions.
// References: docs/log_format.md#checksums; ISA-L crc32_iscsi.
#ifndef ALPHEUS_LOG_FORMAT_CHECKSUM_H_
#define ALPHEUS_LOG_FORMAT_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus {

// CRC32C (Castagnoli, reflected) of `bytes` starting from `seed`, without the
// final inversion.
uint32_t Crc32c(uint32_t seed, std::span<const std::byte> bytes);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_CHECKSUM_H_
