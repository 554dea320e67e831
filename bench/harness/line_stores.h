// SPDX-License-Identifier: Apache-2.0
// line_stores: ways to bring bytes past or out of the cache; what the floor
// and the logs of the benchmarks store with.
//
// None of them fences: what was stored is persistent after the next Fence() of
// the same thread.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_BENCH_HARNESS_LINE_STORES_H_
#define ALPHEUS_BENCH_HARNESS_LINE_STORES_H_

#include <cstddef>
#include <cstdint>

#include "log/base/bytes.h"

namespace alpheus::bench {

struct alignas(kLineBytes) Line {
  std::byte bytes[kLineBytes];
};

// Stores whole lines. Requires: `to` on a line; `from` anywhere.
using StoreLines = void (*)(void* to, const void* from, uint64_t lines);

void StoreLinesCached(void* to, const void* from, uint64_t lines);  // and clwb
void StoreLinesNt16(void* to, const void* from, uint64_t lines);
void StoreLinesNt64(void* to, const void* from, uint64_t lines);

bool HasClwb();
bool HasNt64();

// The widest non-temporal store that this processor has.
StoreLines WidestNt();

// Starts the write-back of the lines that hold [address, address + bytes), by
// the best instruction of this processor.
void FlushRange(const void* address, uint64_t bytes);

// Copies to anywhere: whole lines in the middle past the cache, the rest
// through it, with write-back.
void CopyAndFlush(std::byte* to, const std::byte* from, uint64_t bytes);

void Fence();

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_LINE_STORES_H_
