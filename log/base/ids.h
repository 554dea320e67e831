// SPDX-License-Identifier: Apache-2.0
// ids: the strong integer types of the whole project.
//
// Two integers of the same width never meet in one signature: an LSN is not an
// offset is not an epoch. The types are plain values, 8 bytes, with an explicit
// constructor; `.value` is the only way out.
//
// Thread safety: values.
#ifndef ALPHEUS_LOG_BASE_IDS_H_
#define ALPHEUS_LOG_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

namespace alpheus {

// 64-bit number that compares only with its own kind.
template <class Tag>
struct StrongId {
  uint64_t value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(uint64_t v) : value(v) {}

  constexpr auto operator<=>(const StrongId&) const = default;

  // Distance arithmetic. Requires: the result is in [0, 2^64).
  constexpr StrongId operator+(uint64_t n) const { return StrongId(value + n); }
  constexpr StrongId operator-(uint64_t n) const { return StrongId(value - n); }
  constexpr uint64_t operator-(StrongId other) const {
    return value - other.value;
  }

  friend std::ostream& operator<<(std::ostream& out, StrongId id) {
    return out << id.value;
  }
};

// Log sequence number: consecutive integers from 1; 0 means "none".
using Lsn = StrongId<struct LsnTag>;

// Number of one term of one primary; a ballot until it opens. 0 means "never
// opened".
using Epoch = StrongId<struct EpochTag>;

// Identity of a node in a configuration, given by the operator. 0 is the node
// of a log in local mode.
using NodeId = StrongId<struct NodeIdTag>;

// Monotone byte position in the ring: the place in memory is the position
// modulo the capacity, so that "full" and "empty" never look alike (P-L6).
using RingOffset = StrongId<struct RingOffsetTag>;

// 128-bit random identity of a cluster or a log.
struct Uuid {
  uint64_t high = 0;
  uint64_t low = 0;

  constexpr auto operator<=>(const Uuid&) const = default;
  constexpr bool is_zero() const { return high == 0 && low == 0; }

  // 32 lower-case hexadecimal digits.
  std::string ToString() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out(32, '0');
    for (int i = 0; i < 16; ++i) {
      out[15 - i] = kDigits[(high >> (4 * i)) & 15];
      out[31 - i] = kDigits[(low >> (4 * i)) & 15];
    }
    return out;
  }
};

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_IDS_H_
