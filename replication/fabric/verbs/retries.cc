// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/retries.h"

#include <algorithm>
#include <array>

namespace alpheus::fabric::verbs {
namespace {

constexpr int64_t kAckUnitNanos = 4'096;
constexpr uint8_t kAckCodeMax = 31;
constexpr int64_t kNotReadyUnitNanos = 10'000;

// Hundredths of a millisecond, from code 1 on; code 0 is the longest, 655.36
// ms.
constexpr std::array<int64_t, 31> kNotReadyTimes = {
    1,    2,    3,    4,    6,     8,     12,    16,    24,   32,   48,
    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536, 2048,
    3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

}  // namespace

uint8_t AckTimeoutCode(int64_t retry_ns) {
  uint8_t code = 1;
  while (code < kAckCodeMax &&
         AckTimeoutNanos(code + 1) * (kRetries + 1) <= retry_ns) {
    ++code;
  }
  return code;
}

int64_t AckTimeoutNanos(uint8_t code) { return kAckUnitNanos << code; }

uint8_t NotReadyTimerCode(int64_t wait_ns) {
  const auto enough = [wait_ns](int64_t units) {
    return units * kNotReadyUnitNanos * kNotReadyRetries >= wait_ns / 16 * 15;
  };
  const auto found = std::ranges::find_if(kNotReadyTimes, enough);
  if (found == kNotReadyTimes.end()) return 0;
  return static_cast<uint8_t>(found - kNotReadyTimes.begin() + 1);
}

}  // namespace alpheus::fabric::verbs
