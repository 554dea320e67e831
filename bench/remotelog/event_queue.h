// SPDX-License-Identifier: Apache-2.0
// event_queue: simulated time and its events.
//
// Invariants:
//   EQ1. Events happen in order of their time, and at equal times in the order
//        in which they were added. So a run is the same each time.
//   EQ2. Time never goes back.
// Thread safety: none.
#ifndef ALPHEUS_BENCH_REMOTELOG_EVENT_QUEUE_H_
#define ALPHEUS_BENCH_REMOTELOG_EVENT_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "log/base/check.h"

namespace alpheus::bench::remotelog {

class EventQueue {
 public:
  double now() const { return now_; }

  // Requires: when >= now().
  void At(double when, std::function<void()> what) {
    ALPHEUS_CHECK(when >= now_, "EQ2: nothing happens in the past");
    events_.push({when, next_++, std::move(what)});
  }
  void After(double delay, std::function<void()> what) {
    At(now_ + delay, std::move(what));
  }

  // Runs the next event; returns false if there is none.
  bool RunOne() {
    if (events_.empty()) return false;
    // top() is const, and about to be discarded.
    auto what = std::move(const_cast<Event&>(events_.top()).what);
    now_ = events_.top().when;
    events_.pop();
    what();
    return true;
  }

 private:
  struct Event {
    double when;
    uint64_t number;
    std::function<void()> what;

    bool operator<(const Event& other) const {  // the first one on top
      return when != other.when ? when > other.when : number > other.number;
    }
  };

  double now_ = 0;
  uint64_t next_ = 0;
  std::priority_queue<Event> events_;
};

// Resource that does one thing after the other.
class Lane {
 public:
  // Returns the start of work that takes `takes` and is ready at `ready`.
  double Begin(double ready, double takes) {
    const double begins = std::max(free_, ready);
    free_ = begins + takes;
    return begins;
  }

 private:
  double free_ = 0;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_EVENT_QUEUE_H_
