// SPDX-License-Identifier: Apache-2.0
#include "tools/model/fabric/landing.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace alpheus::model {

Landing::Landing(std::span<std::byte> target, uint64_t part_bytes,
                 RandomSource& random)
    : target_(target) {
  uint64_t offset = 0;
  while (offset < target.size()) {
    // Parts end at the end of a word of the target.
    const auto start = reinterpret_cast<uintptr_t>(target.data()) + offset;
    const uint64_t words = 1 + random.Below(part_bytes / 8);
    const uint64_t bytes =
        std::min(words * 8 - start % 8, target.size() - offset);
    parts_.push_back({offset, bytes});
    offset += bytes;
  }
  for (size_t i = parts_.size(); i > 1; --i) {
    std::swap(parts_[i - 1], parts_[random.Below(i)]);
  }
}

std::span<const std::byte> Landing::Write(std::span<const std::byte> source) {
  const Part part = parts_[next_++];
  std::memcpy(target_.data() + part.offset, source.data() + part.offset,
              part.bytes);
  return target_.subspan(part.offset, part.bytes);
}

void Landing::Read(std::span<std::byte> copy) {
  const Part part = parts_[next_++];
  std::memcpy(copy.data() + part.offset, target_.data() + part.offset,
              part.bytes);
}

}  // namespace alpheus::model
