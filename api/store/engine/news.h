// SPDX-License-Identifier: Apache-2.0
// news: what a log's callbacks bring to the thread of an engine.
//
// Idea: the callbacks come on any thread, and some after the engine is gone. So
// they hold a box, in which the engine looks when it polls.
//
// Thread safety: all members concurrently.
#ifndef ALPHEUS_API_STORE_ENGINE_NEWS_H_
#define ALPHEUS_API_STORE_ENGINE_NEWS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "log/base/mutex.h"

namespace alpheus::store {

class News {
 public:
  // `wake` is called when there is news.
  explicit News(std::function<void()> wake) : wake_(std::move(wake)) {}

  struct State {
    uint64_t durable = 0;    // this record of the engine, and all before it
    uint64_t confirmed = 0;  // this confirmation, and all before it
    absl::Status failure;    // of the log
  };

  void OnDurable(uint64_t number, const absl::Status& status) {
    Note(status, &State::durable, number);
  }
  void OnConfirmed(uint64_t number, const absl::Status& status) {
    Note(status, &State::confirmed, number);
  }
  State state() const {
    const MutexLock lock(mutex_);
    return state_;
  }

 private:
  void Note(const absl::Status& status, uint64_t State::* what,
            uint64_t number) {
    {
      const MutexLock lock(mutex_);
      if (status.ok()) {
        state_.*what = std::max(state_.*what, number);
      } else if (state_.failure.ok()) {
        state_.failure = status;
      }
    }
    wake_();
  }

  const std::function<void()> wake_;
  mutable Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus::store

#endif  // ALPHEUS_API_STORE_ENGINE_NEWS_H_
