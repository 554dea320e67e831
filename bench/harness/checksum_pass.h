// SPDX-License-Identifier: Apache-2.0
// checksum_pass: the least that a recovery with checksums must do: read each
// record's header at its place, sum header and payload, add. What recovery is
// measured against.
#ifndef ALPHEUS_BENCH_HARNESS_CHECKSUM_PASS_H_
#define ALPHEUS_BENCH_HARNESS_CHECKSUM_PASS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus::bench {

struct PassResult {
  uint64_t records = 0;
  uint64_t sum = 0;
};

// Over records that lie one behind the other from the start of `ring`, up to
// the first place whose header has no magic.
PassResult ChecksumPass(std::span<const std::byte> ring);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_CHECKSUM_PASS_H_
