// SPDX-License-Identifier: Apache-2.0
#include "log/base/wall_clock.h"

#include <chrono>
#include <cstddef>
#include <ctime>

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

std::string UtcText(int64_t seconds) {
  const time_t time = seconds;
  tm parts{};
  char text[64];
  if (gmtime_r(&time, &parts) == nullptr) return std::to_string(seconds) + " s";
  const size_t bytes =
      std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts);
  return {text, bytes};
}

}  // namespace alpheus
