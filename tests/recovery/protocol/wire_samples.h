// SPDX-License-Identifier: Apache-2.0
// wire_samples: parts of what primaries and replicas send, for the tests of
// their bytes.
#ifndef ALPHEUS_TESTS_RECOVERY_PROTOCOL_WIRE_SAMPLES_H_
#define ALPHEUS_TESTS_RECOVERY_PROTOCOL_WIRE_SAMPLES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/wire_parts.h"

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

// With the sum that bytes of this kind have: of `kind`'s first word.
inline std::vector<std::byte> Resummed(std::span<const std::byte> bytes,
                                       std::span<const std::byte> kind,
                                       Uuid log_id) {
  recovery::ByteWriter to;
  to.Raw(bytes.first(bytes.size() - recovery::kSumBytes));
  recovery::PutSum(to, recovery::ByteReader(kind).U32(), log_id);
  return to.Take();
}

// Overwrites a number in a message or a report, as a forger would, who knows
// how to sum.
template <class T>
std::vector<std::byte> With(const std::vector<std::byte>& bytes, size_t at,
                            T value) {
  EXPECT_LE(at + sizeof(T), bytes.size() - recovery::kSumBytes);
  std::vector<std::byte> forged = bytes;
  std::memcpy(forged.data() + at, &value, sizeof(T));
  return Resummed(forged, bytes, kLog);
}
// The same in a hello or a server hello.
template <class T>
std::string With(const std::string& bytes, size_t at, T value) {
  std::string forged = bytes;
  std::memcpy(forged.data() + at, &value, sizeof(T));
  return std::string(AsText(Resummed(AsBytes(forged), AsBytes(bytes), Uuid())));
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_PROTOCOL_WIRE_SAMPLES_H_
