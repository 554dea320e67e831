// SPDX-License-Identifier: Apache-2.0
// room_rest: how long a client rests whose log has no room, or whose token has
// used up its rate.
//
// Idea: the log gets room when others clean it, which a client can't see. It
// sends again after a rest, and rests longer each time.
//
// Invariants:
//   RRT1. A rest is kMin long at first and after a request was appended. Each
//         further one is twice as long as the last, and kMax at most.
// Thread safety: one thread at a time.
#ifndef ALPHEUS_API_CLIENT_APPEND_ROOM_REST_H_
#define ALPHEUS_API_CLIENT_APPEND_ROOM_REST_H_

#include <algorithm>
#include <chrono>
#include <utility>

namespace alpheus::client {

class RoomRest {
 public:
  static constexpr std::chrono::milliseconds kMin{20};
  static constexpr std::chrono::milliseconds kMax{1'000};

  // Returns how long to rest now.
  std::chrono::milliseconds Take() {
    return std::exchange(next_, std::min(2 * next_, kMax));
  }
  // A request was appended, or another primary is asked.
  void BeginAgain() { next_ = kMin; }

 private:
  std::chrono::milliseconds next_ = kMin;
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_APPEND_ROOM_REST_H_
