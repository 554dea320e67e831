// SPDX-License-Identifier: Apache-2.0
// audience: those who are told what happens to something that they share.
//
// Invariants:
//   AUD1. Once a seat is destroyed, its function is not called, and no call of
//         it is under way.
// Thread safety: all members concurrently. A function may not add or destroy a
// seat of its own audience.
#ifndef ALPHEUS_API_WIRING_AUDIENCE_H_
#define ALPHEUS_API_WIRING_AUDIENCE_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "log/base/mutex.h"

namespace alpheus {

class Audience : public std::enable_shared_from_this<Audience> {
 public:
  using Say = std::function<void(const std::string&)>;

  // Keeps a place in the audience, which it keeps alive; or none.
  class Seat {
   public:
    Seat() = default;
    Seat(Seat&& other) noexcept = default;
    Seat& operator=(Seat&& other) noexcept {
      std::swap(audience_, other.audience_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Seat() {
      if (audience_ != nullptr) audience_->Remove(place_);
    }

   private:
    friend class Audience;
    Seat(std::shared_ptr<Audience> audience, std::list<Say>::iterator place)
        : audience_(std::move(audience)), place_(place) {}

    std::shared_ptr<Audience> audience_;
    std::list<Say>::iterator place_;
  };

  // `say` may be empty.
  Seat Add(Say say) {
    const MutexLock lock(mutex_);
    return Seat(shared_from_this(), says_.insert(says_.end(), std::move(say)));
  }
  void Tell(const std::string& sentence) {
    const MutexLock lock(mutex_);
    for (const Say& say : says_) {
      if (say != nullptr) say(sentence);
    }
  }

 private:
  void Remove(std::list<Say>::iterator place) {
    const MutexLock lock(mutex_);
    says_.erase(place);
  }

  Mutex mutex_;
  std::list<Say> says_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_AUDIENCE_H_
