// SPDX-License-Identifier: Apache-2.0
// contestant: something that programs on other machines append records to, and
// the load under which it is measured.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_SERVICE_LOAD_CONTESTANT_H_
#define ALPHEUS_BENCH_SERVICE_LOAD_CONTESTANT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace alpheus::bench::service {

// Each stream has so many records without an answer, and sends the next one
// when one is answered.
struct Load {
  uint64_t bytes = 64;  // of a payload
  uint64_t in_flight = 1;
  uint64_t streams = 1;
  int64_t warm_up_ns = 0;  // not measured
  int64_t run_ns = 0;
};

// One turn.
struct Sample {
  std::vector<double>
      latency_us;  // of each record, from its call to its answer
  double seconds = 0;
  // Microseconds of cores that the turn took, by part: "client", "server",
  // "backups".
  std::map<std::string, double> core_us;

  double rate() const {
    return static_cast<double>(latency_us.size()) / seconds;
  }
};

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual std::string name() const = 0;
  // Returns why a load can't be measured; empty: it can.
  virtual std::string WhyNot(const Load& /*load*/) const { return ""; }
  // Takes one turn. Errors: Unavailable; DeadlineExceeded.
  virtual absl::StatusOr<Sample> Run(const Load& load) = 0;
};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_LOAD_CONTESTANT_H_
