// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/source.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "log/base/check.h"

namespace alpheus::bench {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

// Never freed: candidates of all scenarios read it.
const std::byte* MakeSource() {
  void* page = ::operator new(kHugePageBytes, std::align_val_t{kHugePageBytes});
  // Before the first touch. Where it fails, small pages do.
  (void)madvise(page, kHugePageBytes, MADV_HUGEPAGE);
  std::memset(page, 0x5a, kHugePageBytes);
  return static_cast<const std::byte*>(page);
}

}  // namespace

std::span<const std::byte> SourceBytes(uint64_t bytes) {
  ALPHEUS_CHECK(bytes <= kHugePageBytes, "a source is 2 MiB at most");
  static const std::byte* const source = MakeSource();
  return {source, bytes};
}

}  // namespace alpheus::bench
