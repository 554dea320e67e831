// SPDX-License-Identifier: Apache-2.0
// idle_streams: many streams to one server that have done something once, and
// then nothing.
//
// Idea: each stream of requests is of a client of its own and appends one
// record; each tail gets one. So the server has all that a stream in use has.
// The streams share a few connections, as a server bounds how many one has.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_SERVICE_GRPC_IDLE_STREAMS_H_
#define ALPHEUS_BENCH_SERVICE_GRPC_IDLE_STREAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::service {

enum class StreamKind { kAppends, kTail };

class IdleStreams {
 public:
  // Opens so many streams, and waits until all are idle; with tails, one stream
  // of requests more. Errors: Unavailable; DeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<IdleStreams>> Open(
      const std::string& address, const std::string& log, StreamKind kind,
      uint64_t count);
  virtual ~IdleStreams() = default;  // ends them

  // Returns how many of them have not ended.
  virtual uint64_t CountOpen() const = 0;
};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_GRPC_IDLE_STREAMS_H_
