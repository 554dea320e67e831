// SPDX-License-Identifier: Apache-2.0
// layout: places of everything in a region.
//
//   0        superline, copy 0 (4 KiB)
//   4 KiB    superline, copy 1 (4 KiB)
//   8 KiB    watermark, line 0 (4 KiB, one line used); the clean-close word in
//            the line after it
//   12 KiB   watermark, line 1 (4 KiB, one line used)
//   16 KiB   epoch table, copy 0, then copy 1 (whole pages each)
//   then     ring, to the end
//
// Copies lie on different pages, so that one bad page never takes both (P-S3).
// References: docs/formats/log.md#layout.
#ifndef ALPHEUS_LOG_FORMAT_LAYOUT_H_
#define ALPHEUS_LOG_FORMAT_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/format/atomic_cell.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/format/watermark.h"

namespace alpheus {

// The ring as memory: turns monotone offsets into addresses.
class Ring {
 public:
  Ring() = default;
  // Requires: capacity a multiple of kLineBytes, at least kRingCapacityMin.
  Ring(std::byte* data, uint64_t capacity)
      : data_(data),
        capacity_(capacity),
        reciprocal_(std::numeric_limits<uint64_t>::max() / capacity) {}

  std::byte* data() const { return data_; }
  uint64_t capacity() const { return capacity_; }
  // Returns the bytes from the start of the ring, [0, capacity): offset mod
  // capacity. A division would be a tenth of an append; the product with the
  // reciprocal is the quotient or one less. Requires: offset < 2^63
  // (RegionState ensures it).
  uint64_t Place(RingOffset offset) const {
    using Wide = unsigned __int128;
    const auto quotient =
        static_cast<uint64_t>(Wide{offset.value} * reciprocal_ >> 64);
    const uint64_t place = offset.value - quotient * capacity_;
    return place < capacity_ ? place : place - capacity_;
  }
  std::byte* At(RingOffset offset) const { return data_ + Place(offset); }
  // Returns the bytes from `offset` to the end of the ring, (0, capacity].
  uint64_t UntilEnd(RingOffset offset) const {
    return capacity_ - Place(offset);
  }

 private:
  std::byte* data_ = nullptr;
  uint64_t capacity_ = 0;
  uint64_t reciprocal_ = 0;  // 2^64 / capacity_, rounded down
};

inline constexpr uint64_t kRingCapacityMin = 4 * kLineBytes;

// Returns the largest payload of a record: record and header fill at most half
// the ring, so that PAD and record always fit an empty one (P-L6).
uint64_t PayloadBytesMax(uint64_t ring_capacity);

struct Layout {
  uint64_t table_capacity = 0;  // entries
  uint64_t table_copy_bytes = 0;
  uint64_t ring_offset = 0;
  uint64_t ring_capacity = 0;
  uint64_t region_bytes = 0;

  // Returns the layout with exactly this ring. Errors: InvalidArgument.
  static absl::StatusOr<Layout> ForRing(uint64_t ring_capacity,
                                        uint64_t table_capacity);
  // Returns the layout with the largest ring that a region of this size holds,
  // in whole pages. Errors: InvalidArgument (too small; the message names the
  // minimum).
  static absl::StatusOr<Layout> ForRegion(
      uint64_t region_bytes, uint64_t table_capacity = kEpochTableCapacity);
};

inline constexpr uint64_t kSuperlineCopyBytes = kPageBytes;
inline constexpr uint64_t kWatermarkOffset = 2 * kPageBytes;
inline constexpr uint64_t kTableOffset = 4 * kPageBytes;

// Returns the superline's place in a region of at least kTableOffset bytes.
CellPlace SuperlinePlace(std::span<std::byte> region);
// Returns the epoch table's place. Requires: CheckGeometry.
CellPlace EpochTablePlace(std::span<std::byte> region,
                          const Superline& superline);
// Returns the address of a watermark line, 0 or 1.
inline std::byte* WatermarkLine(std::span<std::byte> region, int line) {
  return region.data() + kWatermarkOffset +
         static_cast<uint64_t>(line) * kPageBytes;
}
Ring RingOf(std::span<std::byte> region, const Superline& superline);

// Checks that the sizes in the superline agree with each other and fit the
// region. Errors: DataLoss with both sizes (a truncated file, for example).
absl::Status CheckGeometry(std::span<const std::byte> region,
                           const Superline& superline);

// Word of a clean close: then every copy and every record must be whole. One
// 8-byte word, so that a power cut never leaves it in doubt. It is tied to the
// superline's number, so that it means nothing once the superline has changed.
uint64_t* CleanCloseAddress(std::span<std::byte> region);
uint64_t CleanCloseWord(Uuid log_id, uint64_t superline_seq);

// Reads both watermark lines as they are on media.
WatermarkPair ReadWatermarks(std::span<std::byte> region, Uuid log_id);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_LAYOUT_H_
