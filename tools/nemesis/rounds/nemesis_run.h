// SPDX-License-Identifier: Apache-2.0
// nemesis_run: runs rounds (cluster_round.h) on a cluster of its own up to a
// number or a time, or until a violation.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_NEMESIS_RUN_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_NEMESIS_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/nemesis/rounds/cluster_round.h"
#include "tools/nemesis/rounds/nemesis.h"

namespace alpheus::demo {

struct NemesisOptions {
  std::string alpheus;  // paths of the programs
  std::string alpheusd;
  std::string directory;  // exists; holds the cluster
  std::string feed_text;
  int node_count = 3;
  // RDMA hosts as in ClusterOptions; no link is cut then.
  std::vector<std::string> rdma_hosts = {};
  // Device-DAX, blank or formatted, for the last node's replica of the first
  // log; empty: none.
  std::string device = {};
  uint64_t seed = 0;
  // Limits on rounds and time; 0: none.
  uint64_t rounds_max = 0;
  int64_t nanos_max = 0;
  ClusterRoundOptions round;
};

// Returns whether the run is over: it had as many rounds, or as much time, as
// was asked for.
bool IsOver(const NemesisOptions& options, uint64_t rounds, int64_t nanos);

// Totals of all rounds with one kind of fault.
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
  // Returns a table; its lines end with a line feed.
  std::string ToString() const;
  // Returns "12 primary killed, 3 links cut, ...; cut: 2 (both ways), ...".
  std::string Counts() const;
};

// Runs the rounds; calls `tell` after each. *totals is set also after an error.
// Errors: as ClusterRounds::RunRound, with the round and how to repeat it.
absl::Status RunNemesis(
    const NemesisOptions& options,
    const std::function<void(const ClusterRoundReport&)>& on_report,
    NemesisTotals* totals);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_NEMESIS_RUN_H_
