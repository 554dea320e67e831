// SPDX-License-Identifier: Apache-2.0
// connection_limits: how many connections of clients may be open, and how fast
// new ones may come.
//
// Idea: what is too much of one host is refused, so that it takes nothing from
// the others. What comes too fast is not refused: it waits in the kernel's
// queue, so that clients that all come back after a fail-over get in, one after
// the other.
//
// Invariants:
//   CNL1. At most `open_max` connections are open, and at most `of_host_max` of
//         one host: a number of IPv4, or a network of 64 bits of IPv6, which
//         one host can draw numbers from as it likes. This machine's own
//         numbers count as any number of hosts.
//   CNL2. In each second at most `per_second` come, and so many at once after a
//         quiet second.
// Thread safety: one thread at a time.
#ifndef ALPHEUS_API_GRPC_CONNECTIONS_CONNECTION_LIMITS_H_
#define ALPHEUS_API_GRPC_CONNECTIONS_CONNECTION_LIMITS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"

namespace alpheus::rpc {

struct ConnectionLimitOptions {
  uint64_t open_max = 10'000;
  uint64_t of_host_max = 1'000;
  uint64_t per_second = 1'000;

  bool operator==(const ConnectionLimitOptions&) const = default;
};

struct ConnectionCounts {
  uint64_t open = 0;     // a short while ago
  uint64_t refused = 0;  // closed, as there were too many
};

class ConnectionLimits {
 public:
  // Requires: no limit is 0.
  explicit ConnectionLimits(const ConnectionLimitOptions& options);

  // Returns how long none may come, in nanoseconds; 0: one may come now.
  // `now_ns` never goes back.
  int64_t RestNanos(int64_t now_ns);
  // One has come, whether or not it is let in. Requires: RestNanos was 0.
  void Come();
  // Lets in a connection of this peer, "10.0.0.1:7000". Errors:
  // ResourceExhausted (CNL1). Nothing has changed then.
  absl::Status Enter(std::string_view peer);
  // A connection of this peer has ended that was let in.
  void Leave(std::string_view peer);

  uint64_t open() const { return open_; }

 private:
  const ConnectionLimitOptions options_;
  const int64_t price_ns_;  // of a connection
  uint64_t open_ = 0;
  std::unordered_map<std::string, uint64_t> of_host_;  // none of 0
  // How much of a second's share may come at once.
  int64_t credit_ns_;
  int64_t refilled_ns_ = 0;
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CONNECTIONS_CONNECTION_LIMITS_H_
