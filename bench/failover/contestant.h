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

// A part that is a count, not a time: openings of the log that failed before
// one succeeded.
inline constexpr const char* kFailedOpenings = "failed openings";

// Most tries of a peer's turn, whatever each ended with.
inline constexpr int kPeerTriesMax = 3;

// Most tries of a turn whose round is void. A machine on which so many in a row
// are void has no time for this.
inline constexpr int kVoidTriesMax = 20;

class Contestant {
 public:
  virtual ~Contestant() = default;

  virtual std::string name() const = 0;
  // Returns why a fault can't be measured; empty: it can.
  virtual std::string WhyNot(Fault /*fault*/) const { return ""; }
  // Returns how often in all a turn that ended so is begun: more than once if a
  // primary was taken for lost that nobody had touched. Such a turn is counted,
  // but none of its times is.
  virtual int TriesMax(const absl::Status& /*ended*/) const { return 1; }
  // Starts everything anew, has the primary write, and takes the time of one
  // fail-over. So no earlier round makes this one slower. Errors: Unavailable,
  // DeadlineExceeded (nobody took the primary's place), Aborted (the primary
  // was taken for lost before the fault).
  virtual absl::StatusOr<Parts> Run(Fault fault, uint64_t log_mib) = 0;
};

}  // namespace alpheus::bench::failover

#endif  // ALPHEUS_BENCH_FAILOVER_CONTESTANT_H_
