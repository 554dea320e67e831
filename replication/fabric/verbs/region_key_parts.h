// SPDX-License-Identifier: Apache-2.0
// region_key_parts: the parts of a region's key, as the adapter knows them.
//
// Idea: an adapter's own key (rkey) has 32 bits, most of which count regions,
// and is issued again; addresses are those of the owner's process. So each
// region is registered at a made-up address, in which 19 unpredictable bits
// stand above any offset, and the fabric's key carries both. Its holder knows
// where the region begins. The adapter refuses a guessed key, whose address is
// outside of everything that it registered. One bit says whether the region
// takes a FLUSH: a FLUSH to another region would break the connection.
//
//   key      bits 0-31 rkey | 32-50 tag | 51 grants FLUSH |
//            52-63 place of byte 0 in its page
//   address  bits 43-61 tag | 12-42 offset in pages | 0-11 place in the page
//
// Invariants:
//   1. Two regions of one adapter have different tags until 2^19 - 1 were
//      registered; after that the adapter's rkeys differ (FB7).
//   2. A region's address has the same place in its page as its memory:
//      adapters require that.
// Thread safety: RegionTags none; the rest pure functions.
// References: ibv_reg_mr_iova(3); key_sequence.h.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_REGION_KEY_PARTS_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_REGION_KEY_PARTS_H_

#include <cstdint>

#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/key_sequence.h"

namespace alpheus::fabric::verbs {

inline constexpr int kTagBits = 19;
// Most bytes of a region, its place in a page included.
inline constexpr uint64_t kRegionBytesMax = uint64_t{1} << 43;

struct RegionKeyParts {
  uint32_t rkey = 0;
  uint32_t tag = 0;      // < 2^kTagBits
  uint32_t in_page = 0;  // < 4096
  bool grants_flush = false;

  bool operator==(const RegionKeyParts&) const = default;

  // Returns the address of the region's first byte.
  uint64_t address() const { return uint64_t{tag} * kRegionBytesMax + in_page; }
};

RegionKey MakeRegionKey(const RegionKeyParts& parts);
RegionKeyParts PartsOf(RegionKey key);

// Gives each tag except 0 once, in an unpredictable order; then again.
class RegionTags {
 public:
  explicit RegionTags(RandomSource& random);
  uint32_t Next();

 private:
  uint32_t Permute(uint32_t number) const;

  Speck64 cipher_;
  uint32_t count_ = 0;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_REGION_KEY_PARTS_H_
