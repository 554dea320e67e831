// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/rate_meter.h"

#include <algorithm>

namespace alpheus::rpc {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Returns until when time is taken with this request, too.
int64_t With(int64_t until, uint64_t count, uint64_t rate, int64_t now_ns) {
  if (rate == 0) return until;
  const auto cost = static_cast<int64_t>(static_cast<double>(count) * kSecond /
                                         static_cast<double>(rate));
  return std::max(until, now_ns - kSecond) + cost;
}

}  // namespace

bool RateMeter::Take(uint64_t bytes, int64_t now_ns) {
  const MutexLock lock(mutex_);
  const bool is_ahead = requests_until_ > now_ns || bytes_until_ > now_ns;
  if (is_ahead) return false;
  requests_until_ = With(requests_until_, 1, rates_.requests, now_ns);
  bytes_until_ = With(bytes_until_, bytes, rates_.bytes, now_ns);
  return true;
}

}  // namespace alpheus::rpc
