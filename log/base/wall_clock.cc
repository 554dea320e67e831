// SPDX-License-Identifier: Apache-2.0
#include "log/base/wall_clock.h"

#include <chrono>

namespace alpheus {
namespace {

class RealWallClock final : public WallClock {
 public:
  int64_t NowSeconds() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

const WallClock& WallClock::Real() {
  // Never destroyed: logs are used until the process ends.
  static const auto* const clock = new RealWallClock();
  return *clock;
}

}  // namespace alpheus
