// SPDX-License-Identifier: Apache-2.0
#include "api/store/index/segment.h"

namespace alpheus::store {

void Segment::Format(uint32_t prefix, uint8_t depth) {
  const uint64_t header = BucketHeader{.prefix = prefix, .depth = depth}.word();
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    Store(bucket, 0, header);
    for (size_t i = 1; i <= kSlotsPerBucket; ++i) Store(bucket, i, 0);
  }
}

bool Segment::FindIn(size_t bucket, uint16_t fingerprint, HasKey has_key,
                     Position* found) const {
  for (size_t i = 0; i < kSlotsPerBucket; ++i) {
    const Slot one = slot({bucket, i});
    if (one.is_empty() || one.fingerprint() != fingerprint) continue;
    if (!has_key(one)) continue;  // P-O11
    *found = {bucket, i};
    return true;
  }
  return false;
}

bool Segment::Find(uint64_t hash, HasKey has_key, Position* found) const {
  const size_t home = HomeOf(hash);
  const uint16_t fingerprint = Slot::FingerprintOf(hash);
  if (FindIn(home, fingerprint, has_key, found)) return true;
  if (FindIn(home + 1, fingerprint, has_key, found)) return true;
  const uint8_t stashes = header(home).stashes;
  for (size_t stash = 0; stash < kStashes; ++stash) {
    if ((stashes >> stash & 1) == 0) continue;
    if (FindIn(StashAt(stash), fingerprint, has_key, found)) return true;
  }
  return false;
}

size_t Segment::EmptyIn(size_t bucket) const {
  for (size_t i = 0; i < kSlotsPerBucket; ++i) {
    if (slot({bucket, i}).is_empty()) return i;
  }
  return kSlotsPerBucket;
}

size_t Segment::CountIn(size_t bucket) const {
  size_t count = 0;
  for (size_t i = 0; i < kSlotsPerBucket; ++i) {
    if (!slot({bucket, i}).is_empty()) ++count;
  }
  return count;
}

bool Segment::Insert(uint64_t hash, Slot slot) {
  const size_t home = HomeOf(hash);
  // The emptier of the two, so that neither fills up long before the other.
  const size_t bucket = CountIn(home + 1) < CountIn(home) ? home + 1 : home;
  if (const size_t empty = EmptyIn(bucket); empty < kSlotsPerBucket) {
    Set({bucket, empty}, slot);
    return true;
  }
  for (size_t stash = 0; stash < kStashes; ++stash) {
    const size_t empty = EmptyIn(StashAt(stash));
    if (empty == kSlotsPerBucket) continue;
    // First the header: a reader who does not see the bit finds no key, and
    // there was none.
    BucketHeader home_header = header(home);
    home_header.stashes |= static_cast<uint8_t>(1 << stash);
    Store(home, 0, home_header.word());
    Set({StashAt(stash), empty}, slot);
    return true;
  }
  return false;
}

size_t Segment::size() const {
  size_t count = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) count += CountIn(bucket);
  return count;
}

void Segment::ForEach(absl::FunctionRef<void(Position, Slot)> visit) const {
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    for (size_t i = 0; i < kSlotsPerBucket; ++i) {
      const Slot one = slot({bucket, i});
      if (!one.is_empty()) visit({bucket, i}, one);
    }
  }
}

bool Segment::SplitInto(Segment zeros, Segment ones,
                        absl::FunctionRef<uint64_t(Slot)> hash_of) const {
  const uint8_t bit = depth();
  const auto successor = [&](uint64_t hash) {
    return (hash >> bit & 1) == 0 ? zeros : ones;
  };
  // At the same position; so the keys of the stash find room behind them.
  ForEach([&](Position at, Slot one) {
    if (at.bucket <= kHomes) successor(hash_of(one)).Set(at, one);
  });
  bool all = true;
  ForEach([&](Position at, Slot one) {
    if (at.bucket <= kHomes) return;
    const uint64_t hash = hash_of(one);
    all = successor(hash).Insert(hash, one) && all;
  });
  return all;
}

void Segment::MarkMoved() {
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    BucketHeader moved = header(bucket);
    moved.is_moved = true;
    Store(bucket, 0, moved.word());
  }
}

}  // namespace alpheus::store
