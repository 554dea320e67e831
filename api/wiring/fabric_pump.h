// SPDX-License-Identifier: Apache-2.0
// fabric_pump: delivers a fabric's events to their users, and sleeps when there
// are none.
//
// Thread safety: one thread.
#ifndef ALPHEUS_API_WIRING_FABRIC_PUMP_H_
#define ALPHEUS_API_WIRING_FABRIC_PUMP_H_

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "log/base/deadline.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

class FabricPump {
 public:
  // Receiver of events. Each event goes to one user after the other until one
  // returns true.
  struct User {
    std::function<bool(const ConnectionEvent&)> take_event;
    std::function<bool(const Completion&)> take_completion;
  };

  // The fabric must outlive the pump.
  explicit FabricPump(Fabric& fabric) : fabric_(fabric) {}

  void Add(User user) { users_.push_back(std::move(user)); }

  // Delivers all pending events. Returns false if there were none.
  bool Turn() {
    const size_t count = fabric_.Poll(completions_, &events_);
    for (const ConnectionEvent& event : events_) {
      for (const User& user : users_) {
        if (user.take_event(event)) break;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      for (const User& user : users_) {
        if (user.take_completion(completions_[i])) break;
      }
    }
    const bool any = count != 0 || !events_.empty();
    events_.clear();
    return any;
  }

  // Waits until a turn may find something, or until the deadline.
  void Sleep(Deadline deadline) { fabric_.WaitForActivity(deadline); }

 private:
  Fabric& fabric_;
  std::vector<User> users_;
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_FABRIC_PUMP_H_
