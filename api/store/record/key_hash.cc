// SPDX-License-Identifier: Apache-2.0
#include "api/store/record/key_hash.h"

#include <xxhash.h>

namespace alpheus::store {

uint64_t HashKey(std::span<const std::byte> key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

}  // namespace alpheus::store
