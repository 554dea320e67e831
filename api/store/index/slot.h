// SPDX-License-Identifier: Apache-2.0
// slot: one entry of the index, a word that names the newest object of a key.
//
// Idea: a word is stored whole, so a reader at another host that READs it sees
// the old object or the new one, and never a mixture.
//
//   bits 0..41    place: offset in the ring, counted since the log began, in
//                 units of 8 bytes, modulo 2^41
//   bits 41..54   fingerprint of the key
//   bits 54..62   size class
//   bit  62       the object expires (the reader then needs the log time)
//   bit  63       0
//
// A word of zeros is empty: every object has a size. The size class is an upper
// bound, at most an eighth above the size, so that one READ fetches the whole
// object.
//
// Thread safety: a value.
// References: docs/design/object_store.md#the-index; P-E24.
#ifndef ALPHEUS_API_STORE_INDEX_SLOT_H_
#define ALPHEUS_API_STORE_INDEX_SLOT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace alpheus::store {

// Unit of places and sizes, in bytes.
inline constexpr uint64_t kPlaceUnitBytes = 8;

class Slot {
 public:
  static constexpr int kPlaceBits = 41;
  static constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;

  Slot() = default;
  explicit constexpr Slot(uint64_t word) : word_(word) {}
  // Names an object of so many bytes at `offset`, which is counted since the
  // log began. Requires: both multiples of kPlaceUnitBytes; `bytes` above 0.
  constexpr Slot(uint64_t offset, uint64_t bytes, uint64_t hash,
                 bool expires = false)
      : word_((offset / kPlaceUnitBytes & kPlaceMask) |
              uint64_t{FingerprintOf(hash)} << kFingerprintAt |
              uint64_t{SizeClassOf(bytes)} << kSizeAt |
              uint64_t{expires} << kExpiresAt) {}

  constexpr uint64_t word() const { return word_; }
  constexpr bool is_empty() const { return word_ == 0; }
  // Returns the offset, as far as it is known: modulo 2^44.
  constexpr uint64_t offset() const {
    return (word_ & kPlaceMask) * kPlaceUnitBytes;
  }
  constexpr uint16_t fingerprint() const {
    return static_cast<uint16_t>(word_ >> kFingerprintAt & kFingerprintMask);
  }
  // Returns a bound on the object's bytes.
  constexpr uint64_t bytes_max() const {
    return SizeOfClass(static_cast<uint8_t>(word_ >> kSizeAt));
  }
  constexpr bool expires() const { return (word_ >> kExpiresAt & 1) != 0; }

  constexpr bool operator==(const Slot&) const = default;

  static constexpr uint16_t FingerprintOf(uint64_t hash) {
    return static_cast<uint16_t>(hash >> 40 & kFingerprintMask);
  }
  // The smallest class that holds so many bytes. Below 8 units a class is a
  // size; above, three bits follow the leading one.
  static constexpr uint8_t SizeClassOf(uint64_t bytes) {
    const uint64_t units = (bytes + kPlaceUnitBytes - 1) / kPlaceUnitBytes;
    if (units < 8) return static_cast<uint8_t>(units);
    const int shift = std::bit_width(units) - 4;
    const uint64_t rounded = (units + (uint64_t{1} << shift) - 1) >> shift;
    // A mantissa of 16 is one of 8 with the next exponent.
    return static_cast<uint8_t>((static_cast<uint64_t>(shift) + 1) * 8 +
                                (rounded - 8));
  }
  static constexpr uint64_t SizeOfClass(uint8_t size_class) {
    if (size_class < 8) return size_class * kPlaceUnitBytes;
    return (uint64_t{8} + size_class % 8) << (size_class / 8 - 1) << 3;
  }

 private:
  static constexpr int kFingerprintAt = 41;
  static constexpr uint64_t kFingerprintMask = (1 << 13) - 1;
  static constexpr int kSizeAt = 54;
  static constexpr int kExpiresAt = 62;

  uint64_t word_ = 0;
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_INDEX_SLOT_H_
