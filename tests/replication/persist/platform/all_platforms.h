// SPDX-License-Identifier: Apache-2.0
// all_platforms: every platform that can be declared.
#ifndef ALPHEUS_TESTS_REPLICATION_PERSIST_PLATFORM_ALL_PLATFORMS_H_
#define ALPHEUS_TESTS_REPLICATION_PERSIST_PLATFORM_ALL_PLATFORMS_H_

#include <vector>

#include "replication/persist/platform/platform.h"

namespace alpheus::testing {

// 3 domains, 3 transports, and four things that are so or not.
inline std::vector<replication::Platform> AllPlatforms() {
  std::vector<replication::Platform> all;
  for (int i = 0; i < 3 * 3 * 16; ++i) {
    const int bits = i / 9;
    all.push_back({static_cast<replication::PersistenceDomain>(i % 3),
                   (bits & 1) != 0,
                   (bits & 2) != 0 ? replication::ReceiveBuffers::kPmem
                                   : replication::ReceiveBuffers::kDram,
                   static_cast<replication::Transport>(i / 3 % 3),
                   (bits & 4) != 0, (bits & 8) != 0});
  }
  return all;
}

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_REPLICATION_PERSIST_PLATFORM_ALL_PLATFORMS_H_
