// SPDX-License-Identifier: Apache-2.0
// fabric_pump: hands what a fabric brings to those who use it, and sleeps when
// there is nothing.
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
  // What comes goes to the first user, and on to the next, until one says that
  // it is its own.
  struct User {
    std::function<bool(const ConnectionEvent&)> take_event;
    std::function<bool(const Completion&)> take_completion;
  };

  // The fabric must outlive the pump.
  explicit FabricPump(Fabric& fabric) : fabric_(fabric) {}

  void Add(User user) { users_.push_back(std::move(user)); }

  // Takes what is there. False if nothing was.
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

  // Returns when a turn may take something, or at the deadline.
  void Sleep(Deadline deadline) { fabric_.WaitForActivity(deadline); }

 private:
  Fabric& fabric_;
  std::vector<User> users_;
  std::array<Completion, 64> completions_;
  std::vector<ConnectionEvent> events_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_FABRIC_PUMP_H_
