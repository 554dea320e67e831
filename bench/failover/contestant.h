// SPDX-License-Identifier: Apache-2.0
// contestant: something with a primary that is lost, and with another one that
// takes its place.
//
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_FAILOVER_CONTESTANT_H_
#define ALPHEUS_BENCH_FAILOVER_CONTESTANT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::failover {

// How the primary is lost.
enum class Fault {
  kKill,   // SIGKILL
  kStop,   // SIGSTOP, for good
  kCut,    // no packet comes to it or from it
  kDrain,  // an operator wants another one
};

// Milliseconds by part of a fail-over. "total": from the fault to the first
// record that the next primary acknowledged.
using Parts = std::map<std::string, double>;

// A part that is no time: how many openings of the log failed before one did
// not.
inline constexpr const char* kFailedOpenings = "failed openings";

// Of a program of others, whatever its turn ended with.
inline constexpr int kPeerTriesMax = 3;

// Of rounds that are void. A machine on which so many in a row are void has no
// time for this.
inline constexpr int kVoidTriesMax = 20;

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual std::string name() const = 0;
  // Returns why a fault can't be measured; empty: it can.
  virtual std::string WhyNot(Fault /*fault*/) const { return ""; }
  // Returns how often a turn that ended so is begun in all: more than once
  // where a primary was taken for lost when nobody had touched it. That is
  // counted, and no time of it.
  virtual int TriesMax(const absl::Status& /*ended*/) const { return 1; }
  // Starts all of it anew, has the primary write, and takes the time of one
  // fail-over. So no round is slower because of what an earlier one has shown.
  // Errors: Unavailable, DeadlineExceeded (nobody took its place), Aborted (it
  // was taken for lost before).
  virtual absl::StatusOr<Parts> Run(Fault fault, uint64_t log_mib) = 0;
};

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_CONTESTANT_H_
