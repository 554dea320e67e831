// SPDX-License-Identifier: Apache-2.0
#include "log/base/random.h"

#include <sys/random.h>

#include "log/base/check.h"
#include "log/base/mix.h"

namespace alpheus {

uint64_t Random::Next() {
  const uint64_t value = Mix(state_);
  state_ += 0x9e3779b97f4a7c15u;
  return value;
}

uint64_t EntropyRandom::Next() {
  uint64_t value = 0;
  const ssize_t got = getrandom(&value, sizeof(value), 0);
  ALPHEUS_CHECK(got == sizeof(value),
                "an identity or nonce needs the kernel's randomness");
  return value;
}

}  // namespace alpheus
