// SPDX-License-Identifier: Apache-2.0
// checksum_pass: the minimum work of a recovery with checksums: reads each
// record's header at its place, sums header and payload, adds. Recovery is
// measured against it.
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

// Runs over adjacent records from the start of `ring` to the first place whose
// header has no magic.
PassResult ChecksumPass(std::span<const std::byte> ring);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_CHECKSUM_PASS_H_
