// SPDX-License-Identifier: Apache-2.0
// index: where the newest object of each key lies; peers may READ it.
//
// Idea: extendible hashing. A directory leads from the low bits of a key's hash
// to a segment (segment.h), which holds the keys whose hashes end so. A full
// segment is split by one more bit; the directory doubles when a segment has
// more bits than it:
//
//   directory, depth 2      segments
//     00 ──────────────────> prefix  0, depth 1
//     01 ──────────────────> prefix 01, depth 2
//     10 ───────────────────^ (the first one)
//     11 ──────────────────> prefix 11, depth 2
//
// The index is state in memory, made from the log's records; nothing of it is
// on media. It holds words, and no keys: the caller reads a key where the word
// says that it lies.
//
// A reader at another host has a copy of the directory, which may be old. The
// header of a bucket says of which hashes it is, and whether its segment is
// moved: then the reader fetches the directory again. What a reader may still
// hold is freed later, by generations (P-O3).
//
// The directory is an array of words. Word 0 is its header: the depth in bits 0
// to 8, and bit 8 once another array has taken its place. From word 8 on, entry
// i is for the hashes that end with i: the segment's number in bits 0 to 32,
// its depth in bits 32 to 38.
//
// Invariants:
//   IDX1. Once Put returned, every look at the index finds that slot for the
//         key, or a later one; a reader with an old directory is sent to a new
//         one (P-O4).
//   IDX2. A split publishes in this order: both successors whole; `moved` in
//         each bucket of the old segment; the directory; the next change.
//   IDX3. Memory that a reader may hold is not used again before FreeThrough
//         (P-O3).
//   IDX4. A scan that goes from cursor to cursor shows each key that is there
//         throughout, whatever is split meanwhile.
// Thread safety: one thread calls; peers and other threads READ its memory.
// References: docs/design/object_store.md#the-index.
#ifndef ALPHEUS_API_STORE_INDEX_INDEX_H_
#define ALPHEUS_API_STORE_INDEX_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/index/segment.h"
#include "api/store/index/slot.h"

namespace alpheus::store {

class Index {
 public:
  // Returns `bytes` of memory, aligned to Segment::kBucketBytes, which peers
  // may READ from now on and which outlives the index. Errors:
  // ResourceExhausted.
  using Allocate =
      std::function<absl::StatusOr<std::span<std::byte>>(size_t bytes)>;
  // Returns the hash of the key of a slot's object.
  using HashOf = std::function<uint64_t(Slot)>;
  using HasKey = Segment::HasKey;

  // Bits of the first directory: 4,096 segments have more than a million keys.
  static constexpr uint8_t kDirectoryBits = 12;

  // Makes an empty index. Its first directory has room for `directory_bits`, at
  // most 30; a later one for four times as much. Errors: those of `allocate`.
  static absl::StatusOr<Index> Create(Allocate allocate, HashOf hash_of,
                                      uint8_t directory_bits = kDirectoryBits);

  // Returns the slot of the key with this hash.
  std::optional<Slot> Find(uint64_t hash, HasKey has_key) const;
  // Sets the slot of the key with this hash. Errors, with nothing changed:
  // ResourceExhausted (no memory for a split, or more keys than hashes tell
  // apart); Aborted (keys have other hashes than when they were put).
  absl::Status Put(uint64_t hash, Slot slot, HasKey has_key);
  // Removes the key. Returns false if it is not there.
  bool Erase(uint64_t hash, HasKey has_key);
  // Sets the slot that is still `from` to `to`. Returns false if there is none
  // (P-O13).
  bool Replace(uint64_t hash, Slot from, Slot to);

  // Number of keys.
  size_t size() const { return size_; }

  // A scan goes over the keys in the order of their reversed hashes. Visits the
  // slots of one segment, of which those of an earlier place in that order
  // (ScanOrder(hash) below `cursor`) were visited before. Returns the next
  // cursor; nothing at the end. Begins with 0.
  std::optional<uint64_t> Scan(uint64_t cursor,
                               absl::FunctionRef<void(Slot)> visit) const;
  static uint64_t ScanOrder(uint64_t hash);

  // ---- What readers have

  // A generation has ended: what was replaced until now is freed by
  // FreeThrough(generation). Generations grow.
  void EndGeneration(uint64_t generation);
  // No reader has anything of this generation, or of an earlier one.
  void FreeThrough(uint64_t generation);

  // Returns the array of the directory, and the memory of the segments: number
  // n lies in part n / kSegmentsPerPart.
  std::span<const std::byte> directory() const { return directory_; }
  const std::vector<std::span<std::byte>>& parts() const { return parts_; }
  static constexpr size_t kSegmentsPerPart = 64;
  static constexpr size_t kDirectoryHeaderWords = 8;

 private:
  // Memory that was replaced, until no reader has it.
  struct Replaced {
    std::optional<uint64_t> generation;  // when it ended; nothing: it runs
    uint32_t segment = 0;
  };

  Index(Allocate allocate, HashOf hash_of)
      : allocate_(std::move(allocate)), hash_of_(std::move(hash_of)) {}

  absl::Status Begin(uint8_t directory_bits);
  Segment At(uint32_t number) const;
  uint32_t NumberOf(uint64_t hash) const;
  Segment SegmentOf(uint64_t hash) const { return At(NumberOf(hash)); }
  absl::StatusOr<uint32_t> NewSegment();
  absl::Status Split(uint64_t hash);
  absl::Status DoubleDirectory();
  absl::StatusOr<std::span<std::byte>> NewDirectory(uint8_t depth_max);
  uint64_t Entry(size_t i) const;
  void SetEntry(size_t i, uint32_t segment, uint8_t depth);
  uint64_t LoadWord(size_t i) const;
  void StoreWord(size_t i, uint64_t word);

  Allocate allocate_;
  HashOf hash_of_;
  std::span<std::byte> directory_;
  uint8_t depth_ = 0;      // of the directory
  uint8_t depth_max_ = 0;  // for which there is room
  std::vector<std::span<std::byte>> parts_;
  uint32_t segments_ = 0;  // of which memory was used
  std::vector<uint32_t> free_;
  std::vector<Replaced> replaced_;
  size_t size_ = 0;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_INDEX_INDEX_H_
