// SPDX-License-Identifier: Apache-2.0
#include "api/store/index/index.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"

namespace alpheus::store {
namespace {

// Entries of the directory for each segment, beyond the first 4,096. Hashes
// that are spread need some 4; more means that keys were chosen to collide.
constexpr size_t kEntriesPerSegmentMax = 64;
constexpr uint64_t kDirectoryIsReplaced = uint64_t{1} << 8;
constexpr int kEntryDepthAt = 32;

uint64_t Reverse(uint64_t bits) {
  uint64_t reversed = 0;
  for (int i = 0; i < 64; ++i) {
    reversed = reversed << 1 | (bits & 1);
    bits >>= 1;
  }
  return reversed;
}

}  // namespace

absl::StatusOr<Index> Index::Create(Allocate allocate, HashOf hash_of,
                                    uint8_t directory_bits) {
  Index index(std::move(allocate), std::move(hash_of));
  ALPHEUS_RETURN_IF_ERROR(index.Begin(directory_bits));
  return index;
}

absl::Status Index::Begin(uint8_t directory_bits) {
  ALPHEUS_ASSIGN_OR_RETURN(directory_, NewDirectory(directory_bits));
  depth_max_ = directory_bits;
  ALPHEUS_ASSIGN_OR_RETURN(const uint32_t first, NewSegment());
  At(first).Format(/*prefix=*/0, /*depth=*/0);
  SetEntry(0, first, 0);
  StoreWord(0, depth_);
  return absl::OkStatus();
}

// --- Memory -----------------------------------------------------------------

absl::StatusOr<std::span<std::byte>> Index::NewDirectory(uint8_t depth_max) {
  const size_t words = kDirectoryHeaderWords + (size_t{1} << depth_max);
  return allocate_(words * sizeof(uint64_t));
}

uint64_t Index::LoadWord(size_t i) const {
  auto* const words = reinterpret_cast<uint64_t*>(directory_.data());
  return std::atomic_ref<uint64_t>(words[i]).load(std::memory_order_acquire);
}

void Index::StoreWord(size_t i, uint64_t word) {
  auto* const words = reinterpret_cast<uint64_t*>(directory_.data());
  std::atomic_ref<uint64_t>(words[i]).store(word, std::memory_order_release);
}

uint64_t Index::Entry(size_t i) const {
  return LoadWord(kDirectoryHeaderWords + i);
}

void Index::SetEntry(size_t i, uint32_t segment, uint8_t depth) {
  StoreWord(kDirectoryHeaderWords + i,
            segment | uint64_t{depth} << kEntryDepthAt);
}

Segment Index::At(uint32_t number) const {
  return Segment(parts_[number / kSegmentsPerPart].data() +
                 number % kSegmentsPerPart * Segment::kBytes);
}

uint32_t Index::NumberOf(uint64_t hash) const {
  return static_cast<uint32_t>(Entry(BucketHeader::PrefixOf(hash, depth_)));
}

absl::StatusOr<uint32_t> Index::NewSegment() {
  if (!free_.empty()) {
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  if (segments_ == parts_.size() * kSegmentsPerPart) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::span<std::byte> part,
                             allocate_(kSegmentsPerPart * Segment::kBytes));
    parts_.push_back(part);
  }
  return segments_++;
}

void Index::EndGeneration(uint64_t generation) {
  for (Replaced& one : replaced_) {
    if (!one.generation) one.generation = generation;
  }
}

void Index::FreeThrough(uint64_t generation) {
  std::erase_if(replaced_, [&](const Replaced& one) {
    if (!one.generation || *one.generation > generation) return false;
    free_.push_back(one.segment);
    return true;
  });
}

// --- Keys -------------------------------------------------------------------

std::optional<Slot> Index::Find(uint64_t hash, HasKey has_key) const {
  const Segment segment = SegmentOf(hash);
  Segment::Position at;
  if (!segment.Find(hash, has_key, &at)) return std::nullopt;
  return segment.slot(at);
}

absl::Status Index::Put(uint64_t hash, Slot slot, HasKey has_key) {
  Segment::Position at;
  if (Segment segment = SegmentOf(hash); segment.Find(hash, has_key, &at)) {
    segment.Set(at, slot);
    return absl::OkStatus();
  }
  while (!SegmentOf(hash).Insert(hash, slot)) {
    ALPHEUS_RETURN_IF_ERROR(Split(hash));
  }
  ++size_;
  return absl::OkStatus();
}

bool Index::Erase(uint64_t hash, HasKey has_key) {
  Segment segment = SegmentOf(hash);
  Segment::Position at;
  if (!segment.Find(hash, has_key, &at)) return false;
  segment.Set(at, Slot());
  --size_;
  return true;
}

bool Index::Replace(uint64_t hash, Slot from, Slot to) {
  Segment segment = SegmentOf(hash);
  Segment::Position at;
  if (!segment.Find(hash, from, &at)) return false;
  segment.Set(at, to);
  return true;
}

// --- Growth -----------------------------------------------------------------

absl::Status Index::Split(uint64_t hash) {
  const uint32_t number = NumberOf(hash);
  Segment old = At(number);
  const uint8_t depth = old.depth();
  const uint32_t prefix = BucketHeader::PrefixOf(hash, depth);
  if (depth == depth_) ALPHEUS_RETURN_IF_ERROR(DoubleDirectory());
  ALPHEUS_ASSIGN_OR_RETURN(const uint32_t zeros, NewSegment());
  const absl::StatusOr<uint32_t> ones = NewSegment();
  if (!ones.ok()) {
    free_.push_back(zeros);
    return ones.status();
  }
  // IDX2.
  const auto next_depth = static_cast<uint8_t>(depth + 1);
  const uint32_t next_bit = uint32_t{1} << depth;
  At(zeros).Format(prefix, next_depth);
  At(*ones).Format(prefix | next_bit, next_depth);
  if (!old.SplitInto(At(zeros), At(*ones), hash_of_)) {
    free_.push_back(zeros);
    free_.push_back(*ones);
    return absl::AbortedError(
        "the objects of the index have other keys than before: another process "
        "writes the ring");
  }
  old.MarkMoved();
  const size_t entries = size_t{1} << depth_;
  for (size_t i = prefix; i < entries; i += next_bit) {
    SetEntry(i, (i & next_bit) == 0 ? zeros : *ones, next_depth);
  }
  replaced_.push_back({.generation = std::nullopt, .segment = number});
  return absl::OkStatus();
}

// The upper half leads where the lower one does, so that a reader who knows
// either depth is led right.
absl::Status Index::DoubleDirectory() {
  const size_t entries = size_t{1} << depth_;
  if (depth_ == Segment::kDepthMax ||
      entries * 2 > segments_ * kEntriesPerSegmentMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the index takes no more keys like this one: the hashes "
                     "of too many end "
                     "alike (",
                     size_, " keys, ", segments_, " segments, ", entries,
                     " entries of its directory)"));
  }
  if (depth_ == depth_max_) {
    const auto next_max = static_cast<uint8_t>(depth_max_ + 2);
    ALPHEUS_ASSIGN_OR_RETURN(const std::span<std::byte> next,
                             NewDirectory(next_max));
    std::ranges::copy(directory_, next.begin());
    StoreWord(0, depth_ | kDirectoryIsReplaced);
    directory_ = next;
    depth_max_ = next_max;
  }
  for (size_t i = 0; i < entries; ++i) {
    StoreWord(kDirectoryHeaderWords + entries + i, Entry(i));
  }
  StoreWord(0, ++depth_);
  return absl::OkStatus();
}

// --- Scans ------------------------------------------------------------------

uint64_t Index::ScanOrder(uint64_t hash) { return Reverse(hash); }

std::optional<uint64_t> Index::Scan(uint64_t cursor,
                                    absl::FunctionRef<void(Slot)> visit) const {
  const Segment segment = SegmentOf(Reverse(cursor));
  segment.ForEach([&](Segment::Position /*at*/, Slot slot) { visit(slot); });
  // The hashes of a segment are a run in this order.
  const uint8_t depth = segment.depth();
  if (depth == 0) return std::nullopt;
  const uint64_t run = uint64_t{1} << (64 - depth);
  const uint64_t next = (cursor & ~(run - 1)) + run;
  if (next == 0) return std::nullopt;  // behind the last one
  return next;
}

}  // namespace alpheus::store
