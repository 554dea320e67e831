// SPDX-License-Identifier: Apache-2.0
// rate_meter: lets so many requests and bytes through in a second.
//
// Idea: each request takes its share of time: the tenth of a second, if ten may
// come in one. A request goes if the time that was taken is not ahead of the
// clock. Time that nobody took is kept for a second. So a burst of a second's
// requests goes at once, and one that is larger than a second allows goes by
// itself, and is paid for afterwards.
//
//   10 in a second:  taken  |<-1 s->|now            ten go at once
//                    taken          |now|<-0.1 s->  none goes for 0.1 s
//
// Invariants:
//   RTM1. In any span of T seconds at most (T + 1) times the rate goes, and one
//         request more.
// Thread safety: Take by many threads.
// References: ITU-T I.371 (GCRA).
#ifndef ALPHEUS_API_GRPC_ACCESS_RATE_METER_H_
#define ALPHEUS_API_GRPC_ACCESS_RATE_METER_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "log/base/mutex.h"

namespace alpheus::rpc {

// Per second; 0: no limit.
struct Rates {
  uint64_t requests = 0;
  uint64_t bytes = 0;

  bool is_limited() const { return requests != 0 || bytes != 0; }
  bool operator==(const Rates&) const = default;
};

class RateMeter {
 public:
  explicit RateMeter(const Rates& rates) : rates_(rates) {}

  const Rates& rates() const { return rates_; }
  // Takes what a request of so many bytes costs, and returns true, if it may go
  // now. Else takes nothing. `now_ns` is of one clock that does not go back.
  bool Take(uint64_t bytes, int64_t now_ns);

 private:
  const Rates rates_;
  Mutex mutex_;
  // Until when time was taken, in nanoseconds; 0: none was.
  int64_t requests_until_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_until_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_ACCESS_RATE_METER_H_
