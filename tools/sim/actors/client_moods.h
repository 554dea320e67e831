// SPDX-License-Identifier: Apache-2.0
// client_moods: how hard the clients of one log are on it for a while
// (client_faults.h).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_CLIENT_MOODS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_CLIENT_MOODS_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace alpheus::sim {

class ClientMoods {
 public:
  // Nobody cleans and all append until then, of the world's time. `on_full` is
  // called when a call has found the ring full, once.
  void FillUntil(int64_t ns, std::function<void()> on_full) {
    fill_until_ns_ = ns;
    on_full_ = std::move(on_full);
  }
  // Whoever keeps a reservation does so until then.
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

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_CLIENT_MOODS_H_
