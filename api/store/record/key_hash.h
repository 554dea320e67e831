// SPDX-License-Identifier: Apache-2.0
// key_hash: the hash by which the index finds keys.
//
// Clients compute it too, so it is part of what a store exports. The seed is
// the store's own: who does not know it can't choose keys that collide.
//
// Thread safety: pure.
// References: xxHash, its 64-bit hash of the third generation.
#ifndef ALPHEUS_API_STORE_RECORD_KEY_HASH_H_
#define ALPHEUS_API_STORE_RECORD_KEY_HASH_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus::store {

uint64_t HashKey(std::span<const std::byte> key, uint64_t seed);

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_RECORD_KEY_HASH_H_
