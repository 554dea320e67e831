// SPDX-License-Identifier: Apache-2.0
// segment: a part of the index, which peers may READ: the slots of the keys
// whose hashes end alike.
//
//   home buckets 0..63    one by one for the keys of that number
//   bucket 64             the neighbour of bucket 63
//   stash buckets 0..2    for keys of any home
//
// A key lies in its home bucket, in the next one, or in a stash bucket that its
// home bucket's header names. So one READ of 128 bytes finds most keys. A
// bucket is 64 bytes: a header word and 7 slots. The header:
//
//   bits 0..32    prefix: the low bits of all hashes of this segment
//   bits 32..38   depth: how many bits that are, 0 to 32
//   bit  38       moved: successors have the keys; read the directory again
//   bits 40..43   stash buckets in which keys of this home may lie
//
// Invariants:
//   SEG1. A slot never moves inside a segment, so that a reader who looks at
//         its buckets in any order misses no key that is there throughout
//         (P-O4).
//   SEG2. A segment that is moved does not change any more (P-O4).
// Thread safety: one thread writes; peers and other threads read.
// References: docs/design/object_store.md#the-index; RACE (ATC'21), Dash
// (VLDB'20).
#ifndef ALPHEUS_API_STORE_INDEX_SEGMENT_H_
#define ALPHEUS_API_STORE_INDEX_SEGMENT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "api/store/index/slot.h"

namespace alpheus::store {

// The header word of a bucket.
struct BucketHeader {
  uint32_t prefix = 0;
  uint8_t depth = 0;
  bool is_moved = false;
  uint8_t stashes = 0;

  bool operator==(const BucketHeader&) const = default;

  constexpr uint64_t word() const {
    return prefix | uint64_t{depth} << 32 | uint64_t{is_moved} << 38 |
           uint64_t{stashes} << 40;
  }
  static constexpr BucketHeader Of(uint64_t word) {
    return {static_cast<uint32_t>(word), static_cast<uint8_t>(word >> 32 & 63),
            (word >> 38 & 1) != 0, static_cast<uint8_t>(word >> 40 & 7)};
  }
  // Returns whether the bucket is of a segment that has this hash.
  constexpr bool Has(uint64_t hash) const {
    return PrefixOf(hash, depth) == prefix;
  }
  static constexpr uint32_t PrefixOf(uint64_t hash, uint8_t depth) {
    return static_cast<uint32_t>(hash & ((uint64_t{1} << depth) - 1));
  }
};

class Segment {
 public:
  static constexpr size_t kHomes = 64;
  static constexpr size_t kStashes = 3;
  static constexpr size_t kBuckets = kHomes + 1 + kStashes;
  static constexpr size_t kSlotsPerBucket = 7;
  static constexpr size_t kSlots = kBuckets * kSlotsPerBucket;
  static constexpr size_t kBucketBytes = 64;
  static constexpr size_t kBytes = kBuckets * kBucketBytes;
  static constexpr uint8_t kDepthMax = 32;

  // Returns whether the object of a slot has the key that is looked for.
  using HasKey = absl::FunctionRef<bool(Slot)>;
  // Where a slot is: its bucket, and its number there.
  struct Position {
    size_t bucket = 0;
    size_t slot = 0;
  };

  // `memory` has kBytes, aligned to kBucketBytes, and outlives this.
  explicit Segment(std::byte* memory)
      : words_(reinterpret_cast<uint64_t*>(memory)) {}

  // Returns the home bucket of a hash.
  static constexpr size_t HomeOf(uint64_t hash) { return hash >> 32 & 63; }

  // Makes an empty segment.
  void Format(uint32_t prefix, uint8_t depth);

  BucketHeader header(size_t bucket) const {
    return BucketHeader::Of(Load(bucket, 0));
  }
  uint8_t depth() const { return header(0).depth; }
  Slot slot(Position at) const { return Slot(Load(at.bucket, at.slot + 1)); }
  void Set(Position at, Slot slot) {
    Store(at.bucket, at.slot + 1, slot.word());
  }

  // Finds the slot of the key with this hash. Returns false if there is none.
  bool Find(uint64_t hash, HasKey has_key, Position* found) const;
  // Finds a slot by its word.
  bool Find(uint64_t hash, Slot word, Position* found) const {
    return Find(hash, [word](Slot one) { return one == word; }, found);
  }
  // Adds a slot for a key that is not there. Returns false if none is free.
  bool Insert(uint64_t hash, Slot slot);
  // Returns how many slots are taken.
  size_t size() const;
  void ForEach(absl::FunctionRef<void(Position, Slot)> visit) const;

  // Gives each key to one of two empty segments, by the next bit of its hash.
  // Both have room, since each key finds in them what it has here; returns
  // false if the hashes are not those by which the keys were inserted.
  bool SplitInto(Segment zeros, Segment ones,
                 absl::FunctionRef<uint64_t(Slot)> hash_of) const;
  // Tells readers that the successors have the keys.
  void MarkMoved();

 private:
  uint64_t Load(size_t bucket, size_t word) const {
    return At(bucket, word).load(std::memory_order_acquire);
  }
  void Store(size_t bucket, size_t word, uint64_t value) {
    At(bucket, word).store(value, std::memory_order_release);
  }
  std::atomic_ref<uint64_t> At(size_t bucket, size_t word) const {
    return std::atomic_ref<uint64_t>(
        words_[bucket * (kBucketBytes / sizeof(uint64_t)) + word]);
  }
  static constexpr size_t StashAt(size_t stash) { return kHomes + 1 + stash; }
  bool FindIn(size_t bucket, uint16_t fingerprint, HasKey has_key,
              Position* found) const;
  // Returns the number of an empty slot, or kSlotsPerBucket.
  size_t EmptyIn(size_t bucket) const;
  size_t CountIn(size_t bucket) const;

  uint64_t* words_;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_INDEX_SEGMENT_H_
