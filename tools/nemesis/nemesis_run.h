// SPDX-License-Identifier: Apache-2.0
// nemesis_run: rounds (cluster_round.h) on a cluster of its own until a number
// of them, or a time, is reached, or something is violated.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_NEMESIS_RUN_H_
#define ALPHEUS_TOOLS_NEMESIS_NEMESIS_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/nemesis/cluster_round.h"
#include "tools/nemesis/nemesis.h"

namespace alpheus::demo {

struct NemesisOptions {
  std::string alpheus;  // paths of the programs
  std::string alpheusd;
  std::string directory;  // exists; holds the cluster
  std::string feed_text;
  int node_count = 3;
  // As ClusterOptions has them; no link is cut then.
  std::vector<std::string> rdma_hosts = {};
  // A device-DAX, blank or of a log before, that the last node has its replica
  // of the first log on; empty: none.
  std::string device = {};
  uint64_t seed = 0;
  // It ends after so many rounds, and after so long; 0: not for that.
  uint64_t rounds_max = 0;
  int64_t nanos_max = 0;
  ClusterRoundOptions round;
};

// Of all rounds with one kind of fault.
struct FaultTotals {
  uint64_t rounds = 0;
  uint64_t acknowledged = 0;
  uint64_t recovered = 0;
  uint64_t unacknowledged = 0;
  uint64_t attempts = 0;
  int64_t recovery_nanos_sum = 0;
  int64_t recovery_nanos_max = 0;

  void Add(const ClusterRoundReport& report);
  void Add(const FaultTotals& other);
};

struct NemesisTotals {
  std::map<Fault, FaultTotals> by_fault;
  std::map<CutDirection, uint64_t> by_cut;  // rounds

  FaultTotals Sum() const;
  void Add(const ClusterRoundReport& report);
  // A table; lines end.
  std::string ToString() const;
  // "12 primary killed, 3 links cut, ...; cut: 2 (both ways), ...".
  std::string Counts() const;
};

// `tell` is called after each round. What was reached is in *totals, also after
// an error.
// Errors: as ClusterRounds::RunRound, with the round and how to repeat it.
absl::Status RunNemesis(
    const NemesisOptions& options,
    const std::function<void(const ClusterRoundReport&)>& tell,
    NemesisTotals* totals);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_NEMESIS_RUN_H_
