// SPDX-License-Identifier: Apache-2.0
// fuzz_input: the bytes of a fuzzer, read as a program of small choices.
//
// Idea: an input is a list of decisions, not an image: what a byte means is
// decided where it is read, so that most mutations of an input are again an
// input that goes deep. Behind its end there are zeros, so every input is
// whole and shorter ones stay interesting.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TESTS_FUZZ_FUZZ_INPUT_H_
#define ALPHEUS_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace alpheus::testing {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t bytes) : rest_(data, bytes) {}

  bool empty() const { return rest_.empty(); }

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }
  bool Flag() { return (Byte() & 1) != 0; }

  // In [0, bound). Takes as many bytes as the bound needs. Requires: bound > 0.
  uint64_t Below(uint64_t bound) {
    uint64_t value = 0;
    for (uint64_t max = bound - 1; max > 0; max >>= 8) {
      value = value << 8 | Byte();
    }
    return value % bound;
  }

  // Eight bytes, little-endian.
  uint64_t Word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{Byte()} << (8 * i);
    return value;
  }

  // Mostly a neighbour of `base`; else a power of two or one less; else
  // anything.
  uint64_t Near(uint64_t base) {
    const uint64_t choice = Byte();
    if (choice < 128) return base + choice - 32;
    if (choice < 192) return uint64_t{1} << (choice - 128);
    if (choice < 250) return (uint64_t{1} << (choice - 192)) - 1;
    return Word();
  }

  // Up to `bytes` of what is left.
  std::span<const uint8_t> Take(size_t bytes) {
    const size_t taken = std::min(bytes, rest_.size());
    const std::span<const uint8_t> front = rest_.first(taken);
    rest_ = rest_.subspan(taken);
    return front;
  }
  std::span<const uint8_t> rest() const { return rest_; }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_FUZZ_INPUT_H_
