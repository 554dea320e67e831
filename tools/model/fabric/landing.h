// SPDX-License-Identifier: Apache-2.0
// landing: bytes of one operation on their way into memory, part by part.
//
// The parts come in a seeded order, each of whole 8-byte words of the target
// (FB1 of fabric.h). A landing that stops in the middle leaves a part.
// Thread safety: none.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_LANDING_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_LANDING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "log/base/random.h"

namespace alpheus::model {

class Landing {
 public:
  Landing() = default;
  // Parts of up to `part_bytes` bytes. Requires: part_bytes is a multiple of 8.
  Landing(std::span<std::byte> target, uint64_t part_bytes,
          RandomSource& random);

  size_t parts_left() const { return parts_.size() - next_; }

  // Write copies the next part out of `source`, which is as long as the target;
  // returns the bytes that it wrote to. Read copies the next part out of the
  // target. Requires: parts_left() > 0.
  std::span<const std::byte> Write(std::span<const std::byte> source);
  void Read(std::span<std::byte> copy);

 private:
  struct Part {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  std::span<std::byte> target_;
  std::vector<Part> parts_;
  size_t next_ = 0;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_LANDING_H_
