// SPDX-License-Identifier: Apache-2.0
// client_profiles: temporary behaviour of the clients of one log
// (client_faults.h).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_CLIENT_PROFILES_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_CLIENT_PROFILES_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace alpheus::sim {

class ClientProfiles {
 public:
  // Nobody cleans and all append until `ns` of the world's time. Calls
  // `on_full` once, when a call has found the ring full.
  void FillUntil(int64_t ns, std::function<void()> on_full) {
    fill_until_ns_ = ns;
    on_full_ = std::move(on_full);
  }
  // A thread with a kept reservation keeps it until `ns`.
  void KeepUntil(int64_t ns) { keep_until_ns_ = ns; }
  void Calm() { fill_until_ns_ = keep_until_ns_ = 0; }

  bool fills_at(int64_t ns) const { return ns < fill_until_ns_; }
  bool keeps_at(int64_t ns) const { return ns < keep_until_ns_; }

  void FoundFull() {
    if (on_full_) std::exchange(on_full_, nullptr)();
  }

 private:
  int64_t fill_until_ns_ = 0;
  int64_t keep_until_ns_ = 0;
  std::function<void()> on_full_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_CLIENT_PROFILES_H_
