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
  explicit FabricPump(fabric::Fabric& fabric) : fabric_(fabric) {}

  // Gives each pending event to `sink`, which has OnConnectionEvent and
  // OnCompletion. Returns false if there were none.
  template <class Sink>
  bool Turn(Sink& sink) {
    const size_t count = fabric_.Poll(completions_, &events_);
    for (const fabric::ConnectionEvent& event : events_)
      sink.OnConnectionEvent(event);
    for (size_t i = 0; i < count; ++i) sink.OnCompletion(completions_[i]);
    const bool any = count != 0 || !events_.empty();
    events_.clear();
    return any;
  }

  // Waits until a turn may find something, or until the deadline.
  void Sleep(Deadline deadline) { fabric_.WaitForActivity(deadline); }

  // Drives `machine` until its Poll returns kDone. It is a sink with Poll and
  // NextPoll (docs/design/architecture.md, "The poll rule").
  template <class Machine>
  void RunUntilDone(Machine& machine) {
    for (;;) {
      if (Turn(machine)) continue;
      if (machine.Poll() == Polled::kDone) return;
      Sleep(machine.NextPoll());
    }
  }

  // Gives events to `sink` until `is_done` returns true, or until the deadline.
  // Returns false at the deadline.
  template <class Done, class Sink>
  bool RunUntil(const Done& is_done, Deadline deadline, Sink& sink) {
    for (;;) {
      if (Turn(sink)) continue;
      if (is_done()) return true;
      if (deadline.HasPassed(Clock::Real().NowNanos())) return false;
      Sleep(deadline);
    }
  }

  // Drops events until the deadline, for a pause between two attempts.
  void DropUntil(Deadline deadline) {
    struct {
      void OnConnectionEvent(const fabric::ConnectionEvent& /*event*/) {}
      void OnCompletion(const fabric::Completion& /*completion*/) {}
    } dropped;
    RunUntil([] { return false; }, deadline, dropped);
  }

 private:
  fabric::Fabric& fabric_;
  std::array<fabric::Completion, 64> completions_;
  std::vector<fabric::ConnectionEvent> events_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_FABRIC_PUMP_H_
