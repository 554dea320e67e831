// SPDX-License-Identifier: Apache-2.0
// event_queue: virtual time, and the events that are still to happen in it.
//
// Events of one moment happen in the order in which they were scheduled, so
// that a run is a function of its schedule.
// Thread safety: none.
#ifndef ALPHEUS_TOOLS_MODEL_FABRIC_EVENT_QUEUE_H_
#define ALPHEUS_TOOLS_MODEL_FABRIC_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "log/base/clock.h"

namespace alpheus::model {

class EventQueue final : public Clock {
 public:
  int64_t NowNanos() const override { return now_; }

  // Requires: after_ns >= 0.
  void Schedule(int64_t after_ns, std::function<void()> happen) {
    events_.emplace(std::pair(now_ + after_ns, next_++), std::move(happen));
  }

  // Runs the next event and advances time to it. Returns false if there is
  // none.
  bool Step() {
    if (events_.empty()) return false;
    auto event = events_.extract(events_.begin());
    now_ = event.key().first;
    event.mapped()();
    return true;
  }

  // Runs all events of the next `ns` nanoseconds.
  void Run(int64_t ns) {
    const int64_t end = now_ + ns;
    while (!events_.empty() && events_.begin()->first.first <= end) Step();
    now_ = std::max(now_, end);
  }

 private:
  int64_t now_ = 0;
  uint64_t next_ = 0;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> events_;
};

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_FABRIC_EVENT_QUEUE_H_
