// SPDX-License-Identifier: Apache-2.0
// followed: a log that readers follow while records are appended at a pace.
//
// Idea: each record has its number in its payload. Its writer notes when it was
// sent and when it was answered, and each reader when it came. All are threads
// of this process, so all times are of one clock.
//
// A record is durable after it was sent and before it is answered. So the time
// from its sending is the most that a delivery can have taken, and the time
// from its answer the least.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_SERVICE_LOAD_FOLLOWED_H_
#define ALPHEUS_BENCH_SERVICE_LOAD_FOLLOWED_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/service/load/appender.h"

namespace alpheus::bench::service {

struct Pace {
  uint64_t bytes = 64;  // of a payload, at least that of a number
  uint64_t readers = 1;
  int64_t every_ns = 0;  // a record
  uint64_t warm_up_records = 0;
  uint64_t records = 0;
};

// Microseconds of one turn.
struct Delivered {
  std::vector<double> append_us;         // of each record
  std::vector<double> from_sent_us;      // of each record at each reader
  std::vector<double> from_answered_us;  // the same; negative: it came earlier
};

// A reader of a log, which begins behind its last record of now.
class Follower {
 public:
  virtual ~Follower() = default;

  // Waits for the next record, for a second at most; returns its payload;
  // empty: none came. Errors: as the service's reader.
  virtual absl::StatusOr<std::string> Next() = 0;
};

using MakeFollower = std::function<absl::StatusOr<std::unique_ptr<Follower>>()>;

// Appends at that pace while that many readers follow. `appended` is told each
// record's LSN. Errors: those of a reader or of the appender; DeadlineExceeded
// (a record does not come).
absl::StatusOr<Delivered> RunFollowed(
    Appender& appender, const MakeFollower& make, const Pace& pace,
    const std::function<void(uint64_t lsn)>& appended);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_LOAD_FOLLOWED_H_
