// SPDX-License-Identifier: Apache-2.0
// appender: one stream of records to a server, and a load on several of them.
//
// Idea: one record at a time is appended by a call that waits, as most programs
// do. More of them are kept under way by their answers: each answer sends the
// next record, on whatever thread it comes.
//
// Thread safety: as each function says.
#ifndef ALPHEUS_BENCH_SERVICE_LOAD_APPENDER_H_
#define ALPHEUS_BENCH_SERVICE_LOAD_APPENDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/service/load/contestant.h"

namespace alpheus::bench::service {

// Gets the LSN of a record, or why it has none.
using Answered = std::function<void(const absl::StatusOr<uint64_t>& lsn)>;

class Appender {
 public:
  virtual ~Appender() = default;

  // Appends a record; returns its LSN once it is answered. Errors: as the
  // service's client.
  virtual absl::StatusOr<uint64_t> Append(const std::string& payload) = 0;
  // Begins to append. `answered` is called once, without a lock, on any thread;
  // it may call this again. Errors: the same, at once.
  virtual absl::Status Begin(const std::string& payload, Answered answered) = 0;
};

using Appenders = std::vector<std::unique_ptr<Appender>>;

// Appends under that load, one appender for each of its streams, after a first
// record of each by which it connects. `appended` is told each record's LSN, by
// any thread; it should be short. Errors: those of the first record that fails;
// DeadlineExceeded (no answer).
absl::StatusOr<Sample> RunLoad(
    const Appenders& appenders, const Load& load,
    const std::function<void(uint64_t lsn)>& appended);

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_LOAD_APPENDER_H_
