// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/region_key_parts.h"

#include <array>

namespace alpheus::fabric::verbs {
namespace {

constexpr int kRkeyBits = 32;
constexpr int kInPageShift = kRkeyBits + kTagBits + 1;
// One bit more than a tag, so that both halves of a number are equal.
constexpr int kHalfBits = (kTagBits + 1) / 2;
constexpr uint32_t kNumberMask = (1U << (2 * kHalfBits)) - 1;
constexpr uint32_t kHalfMask = (1U << kHalfBits) - 1;
constexpr uint32_t kTagMask = (1U << kTagBits) - 1;
constexpr uint32_t kRounds = 8;

Speck64 MakeCipher(RandomSource& random) {
  std::array<uint32_t, 4> secret{};
  for (uint32_t& word : secret) word = static_cast<uint32_t>(random.Next());
  return Speck64(secret);
}

}  // namespace

RegionKey MakeRegionKey(const RegionKeyParts& parts) {
  return RegionKey(uint64_t{parts.in_page} << kInPageShift |
                   uint64_t{parts.grants_flush} << (kInPageShift - 1) |
                   uint64_t{parts.tag} << kRkeyBits | parts.rkey);
}

RegionKeyParts PartsOf(RegionKey key) {
  return {static_cast<uint32_t>(key.value),
          static_cast<uint32_t>(key.value >> kRkeyBits) & kTagMask,
          static_cast<uint32_t>(key.value >> kInPageShift),
          (key.value >> (kInPageShift - 1) & 1) != 0};
}

RegionTags::RegionTags(RandomSource& random) : cipher_(MakeCipher(random)) {}

uint32_t RegionTags::Next() {
  for (;;) {
    const uint32_t tag = Permute(count_);
    count_ = (count_ + 1) & kNumberMask;
    if (tag != 0 && tag <= kTagMask) return tag;
  }
}

// A Feistel network: whatever its rounds do, no two numbers make one tag.
uint32_t RegionTags::Permute(uint32_t number) const {
  uint32_t left = number >> kHalfBits;
  uint32_t right = number & kHalfMask;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t noise = cipher_.Encrypt(uint64_t{round} << 32 | right);
    const uint32_t next = left ^ (static_cast<uint32_t>(noise) & kHalfMask);
    left = right;
    right = next;
  }
  return left << kHalfBits | right;
}

}  // namespace alpheus::fabric::verbs
