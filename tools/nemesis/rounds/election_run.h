// SPDX-License-Identifier: Apache-2.0
// election_run: runs rounds of elections (election_round.h) on a cluster of its
// own up to a number or a time, or until a violation.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_RUN_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "tools/nemesis/rounds/election_nemesis.h"
#include "tools/nemesis/rounds/election_round.h"
#include "tools/nemesis/rounds/nemesis_run.h"

namespace alpheus::demo {

struct ElectionRunOptions {
  NemesisOptions run;  // without RDMA hosts and device
  ElectionKind kind = ElectionKind::kMixed;
  int zookeeper_count = 0;  // servers; 0: the membership is static
  int64_t stop_nanos = 0;   // of kStopped: how long ZooKeeper stands still
  ElectionRoundOptions round = {};
};

struct ElectionTotals {
  uint64_t rounds = 0;
  uint64_t acknowledged = 0;
  uint64_t epochs = 0;
  int64_t fail_over_nanos_max = 0;
  std::map<ElectionFault, uint64_t> by_fault;   // rounds
  std::map<ServiceFault, uint64_t> by_service;  // rounds, with ZooKeeper

  void Add(const ElectionReport& report);
  // Returns "500 rounds, 1234 epochs, ...: 12 primary killed, ...".
  std::string ToString() const;
};

// Runs the rounds, and the last check; calls `on_report` after each round.
// *totals is set also after an error. Errors: as ElectionRounds::RunRound, with
// the round; FailedPrecondition (this machine has no ZooKeeper);
// InvalidArgument (kStopped without servers).
absl::Status RunElections(
    const ElectionRunOptions& options,
    const std::function<void(const ElectionReport&)>& on_report,
    ElectionTotals* totals);

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_RUN_H_
