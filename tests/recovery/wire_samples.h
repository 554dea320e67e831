// SPDX-License-Identifier: Apache-2.0
// wire_samples: parts of what primaries and replicas send, for the tests of
// their bytes.
#ifndef ALPHEUS_TESTS_RECOVERY_WIRE_SAMPLES_H_
#define ALPHEUS_TESTS_RECOVERY_WIRE_SAMPLES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"

namespace alpheus::testing {

inline constexpr Uuid kLog{7, 8};
inline constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

inline EpochTable TableOf(uint64_t entries) {
  EpochTable table = EpochTable::Empty(kLog);
  for (uint64_t i = 1; i <= entries; ++i) {
    table = table.With({Epoch(i), i * 11, Lsn(i), RingOffset((i - 1) * 64), i},
                       Lsn(1));
  }
  return table;
}

inline Configuration TwoMembers() {
  return {{5, 2, 1, {{NodeId(1), 101}, {NodeId(2), 102}}},
          MemberList{
              4, 3, 2, {{NodeId(1), 101}, {NodeId(3), 103}, {NodeId(4), 104}}}};
}

// Overwrites a number in encoded bytes, as a forger would.
template <class T>
std::vector<std::byte> With(std::vector<std::byte> bytes, size_t at, T value) {
  EXPECT_LE(at + sizeof(T), bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof(T));
  return bytes;
}
template <class T>
std::string With(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
  return bytes;
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_WIRE_SAMPLES_H_
