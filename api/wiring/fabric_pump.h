// SPDX-License-Identifier: Apache-2.0
// fabric_pump: delivers a fabric's events, and sleeps when there are none.
//
// Idea: all that has arrived is taken before anything checks for silence. This
// process may have stood still meanwhile, and must not blame its peers.
//
// Thread safety: one thread.
#ifndef ALPHEUS_API_WIRING_FABRIC_PUMP_H_
#define ALPHEUS_API_WIRING_FABRIC_PUMP_H_

#include <array>
#include <cstddef>
#include <vector>

#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

class FabricPump {
 public:
  // The fabric must outlive the pump.
  explicit FabricPump(Fabric& fabric) : fabric_(fabric) {}

  // Gives each pending event to `take`: a ConnectionEvent or a Completion.
  // Returns false if there were none.
  template <class Take>
  bool Turn(const Take& take) {
    const size_t count = fabric_.Poll(completions_, &events_);
    for (const ConnectionEvent& event : events_) take(event);
    for (size_t i = 0; i < count; ++i) take(completions_[i]);
    const bool any = count != 0 || !events_.empty();
    events_.clear();
    return any;
  }

  // Waits until a turn may find something, or until the deadline.
  void Sleep(Deadline deadline) { fabric_.WaitForActivity(deadline); }

  // Drives `machine` until its Poll returns kDone. It has Take, Poll and
  // NextPoll (docs/design/architecture.md, "The poll rule").
  template <class Machine>
  void RunUntilDone(Machine& machine) {
    for (;;) {
      if (Turn([&](const auto& news) { machine.Take(news); })) continue;
      if (machine.Poll() == Polled::kDone) return;
      Sleep(machine.NextPoll());
    }
  }

  // Gives events to `take` until `is_done` returns true, or until the deadline.
  // Returns false at the deadline.
  template <class Done, class Take>
  bool RunUntil(const Done& is_done, Deadline deadline, const Take& take) {
    for (;;) {
      if (Turn(take)) continue;
      if (is_done()) return true;
      if (deadline.HasPassed(Clock::Real().NowNanos())) return false;
      Sleep(deadline);
    }
  }

 private:
  Fabric& fabric_;
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_FABRIC_PUMP_H_
