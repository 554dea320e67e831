// SPDX-License-Identifier: Apache-2.0
// append_transport: what appends to a remote log by the steps of a row, and
// tells how long each took.
//
// Idea: the scenarios and the judgements know rows and times only. Simulated
// time (simulated_transport.h) is one transport; connections of a fabric are
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

// a, and the tail pointer, b.
inline constexpr uint64_t kRecordBytes = 64;
inline constexpr uint64_t kTailBytes = 8;

struct AppendRun {
  Platform platform;  // of the server
  std::span<const Step> steps;
  uint64_t clients = 1;  // each with one append on its way, on a connection
  uint64_t appends = 1;  // of each
};

// Nanoseconds.
struct AppendTimes {
  std::vector<double> latency;  // of each append, as they ended
  double elapsed = 0;
  // What the server's processor did, in all: for messages until they were
  // answered, and behind that.
  double responder_messages = 0;
  double responder_background = 0;
};

class AppendTransport {
 public:
  virtual ~AppendTransport() = default;

  // Errors: Unimplemented (the row doesn't run there), FailedPrecondition
  // (the steps never end).
  virtual absl::StatusOr<AppendTimes> Append(const AppendRun& run) = 0;
};

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_APPEND_TRANSPORT_H_
