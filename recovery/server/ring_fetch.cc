// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/ring_fetch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace alpheus::recovery {

Fetched FetchedFrom(const Ring& ring, RingOffset begin, RingOffset end,
                    const Fetch& fetch) {
  Fetched shown{fetch.from, {}};
  const bool is_before = fetch.from < begin;
  if (is_before || fetch.from >= end) return shown;
  const uint64_t bytes = std::min<uint64_t>(fetch.bytes, end - fetch.from);
  const uint64_t first = std::min(bytes, ring.UntilEnd(fetch.from));
  const std::byte* const at = ring.At(fetch.from);
  shown.bytes.reserve(bytes);
  shown.bytes.assign(at, at + first);
  shown.bytes.insert(shown.bytes.end(), ring.data(),
                     ring.data() + (bytes - first));
  return shown;
}

}  // namespace alpheus::recovery
