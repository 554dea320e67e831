// SPDX-License-Identifier: Apache-2.0
// source: the bytes that a candidate stores again and again.
//
// Idea: where a source lies moves the time of a copy by up to a third: its
// place in a page, and its pages' places in the caches. So all read the same
// bytes, on one huge page if the system gives one.
#ifndef ALPHEUS_BENCH_HARNESS_SOURCE_H_
#define ALPHEUS_BENCH_HARNESS_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus::bench {

// The first `bytes` bytes of all sources, from a page's start, each 0x5a.
// Requires: bytes <= 2 MiB.
std::span<const std::byte> SourceBytes(uint64_t bytes);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_SOURCE_H_
