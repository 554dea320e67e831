// SPDX-License-Identifier: Apache-2.0
// append_transport: the interface that appends to a remote log by the steps of
// a row, and returns the times.
//
// Idea: scenarios and judgements know rows and times only. Simulated time
// (simulated_transport.h) is one transport; connections of a fabric are
// another, for the rows that run there.
//
// Thread safety: none.
// References: remote persistence taxonomy §4.1; docs/results/remotelog.md.
#ifndef ALPHEUS_BENCH_REMOTELOG_APPEND_TRANSPORT_H_
#define ALPHEUS_BENCH_REMOTELOG_APPEND_TRANSPORT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "replication/persist/platform/method.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::bench::remotelog {

// Record (part a), and tail pointer (part b).
inline constexpr uint64_t kRecordBytes = 64;
inline constexpr uint64_t kTailBytes = 8;

struct AppendRun {
  replication::Platform platform;  // of the server
  std::span<const replication::Step> steps;
  uint64_t clients = 1;  // each with one append in flight, on a connection
  uint64_t appends = 1;  // of each
};

// Nanoseconds.
struct AppendTimes {
  std::vector<double> latency;  // of each append, as they ended
  double elapsed = 0;
  // Time of the server's processor, in all: for messages until they were
  // answered, and after that.
  double responder_messages = 0;
  double responder_background = 0;
};

class AppendTransport {
 public:
  virtual ~AppendTransport() = default;

  // Runs the appends. Errors: Unimplemented (the row doesn't run there),
  // FailedPrecondition (the steps never end).
  virtual absl::StatusOr<AppendTimes> Append(const AppendRun& run) = 0;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_APPEND_TRANSPORT_H_
