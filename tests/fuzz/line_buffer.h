// SPDX-License-Identifier: Apache-2.0
// line_buffer: memory of exactly so many bytes on a line boundary, so that a
// sanitizer sees the first byte that is read beyond it.
//
// Thread safety: a value.
#ifndef ALPHEUS_TESTS_FUZZ_LINE_BUFFER_H_
#define ALPHEUS_TESTS_FUZZ_LINE_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "log/base/bytes.h"

namespace alpheus::testing {

class LineBuffer {
 public:
  LineBuffer() = default;
  // Zeros.
  explicit LineBuffer(size_t bytes)
      : data_(static_cast<std::byte*>(
            ::operator new(bytes, std::align_val_t{kLineBytes}))),
        bytes_(bytes) {
    std::fill_n(data_.get(), bytes, std::byte{0});
  }
  explicit LineBuffer(std::span<const std::byte> content)
      : LineBuffer(content.size()) {
    std::copy(content.begin(), content.end(), data_.get());
  }

  std::span<std::byte> bytes() const { return {data_.get(), bytes_}; }

 private:
  struct Delete {
    void operator()(std::byte* data) const {
      ::operator delete(data, std::align_val_t{kLineBytes});
    }
  };

  std::unique_ptr<std::byte, Delete> data_;
  size_t bytes_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_FUZZ_LINE_BUFFER_H_
