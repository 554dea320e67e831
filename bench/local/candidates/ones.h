// SPDX-License-Identifier: Apache-2.0
// ones: counts one bits, by the widest instruction of this processor.
//
// Thread safety: pure function.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_ONES_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_ONES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus::bench {

uint64_t CountOnes(std::span<const std::byte> bytes);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_ONES_H_
