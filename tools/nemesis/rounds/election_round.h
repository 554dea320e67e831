// SPDX-License-Identifier: Apache-2.0
// election_round: lets an elected primary append on a cluster of real
// processes, takes it away, and lets the oracle judge the log with which the
// next one goes on.
//
// Idea: at each node a program stands for primary (`alpheus append --stand`). A
// program that has ended is started again, as by a supervisor. The election
// decides which one becomes primary, except where the fault is an operator's
// word.
//
// A round (election_nemesis.h draws the open choices):
//   1. servers of ZooKeeper that the last round left hit come back; missing
//      programs are started; a primary appends
//   2. the fault of ZooKeeper, and of a backup; then that of the primary, with
//      a load before and after it, if the plan has one
//   3. a primary appends: another one, if the fault takes the first one away
//   4. all that was hit comes back; the first primary, if it lives, loses the
//      log
//   5. a check of the log while it is written
// When the log is full of records, all programs are killed, a last check is
// made, and the next round begins with a new log.
//
// Checks: each look at the log is held against all acknowledgements and all
// earlier looks (log_history.h), for each term of each program. Each epoch is
// announced by one program, and has the records of one program (RO7 of
// recovery_oracle.h). If rounds are patient, a primary that is drained under
// load loses nothing: none of its appends ends with an unknown outcome (CAN2 of
// candidate.h).
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_ROUND_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nemesis/links/cuttable_links.h"
#include "tools/nemesis/oracles/log_history.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/processes/standing_programs.h"
#include "tools/nemesis/processes/zookeeper_servers.h"
#include "tools/nemesis/rounds/election_nemesis.h"
#include "tools/nemesis/writers/cluster_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

struct ElectionRoundOptions {
  uint64_t region_bytes = 8 << 20;
  uint64_t threads = 4;
  // Whether times are so long that nobody takes a process for lost only because
  // the machine is busy. Then a primary that nothing hits may fail no call, nor
  // lose the log. Else it may: fail-overs are fast, and many processes share
  // the cores.
  bool is_patient = false;
  // Size of a log's records, in bytes, at which a new log is made.
  uint64_t log_bytes_max = 1 << 20;
};

struct ElectionReport {
  ElectionPlan plan;
  uint64_t acknowledged_count = 0;  // in this round
  uint64_t epoch_count = 0;         // opened in this round
  // From the fault to an acknowledgement by another program; 0: none was due.
  int64_t fail_over_nanos = 0;
};

class ElectionRounds {
 public:
  // All arguments must outlive it; `servers` may be null. Requires: the
  // cluster's nodes and the servers run.
  ElectionRounds(const ElectionRoundOptions& options, Cluster* cluster,
                 ZookeeperServers* servers, const Feed* feed)
      : options_(options),
        cluster_(*cluster),
        servers_(servers),
        history_(feed),
        programs_(cluster, feed, [this](const ClusterWriter& ended) {
          return RestartEnded(ended);
        }) {}
  ElectionRounds(const ElectionRounds&) = delete;
  ElectionRounds& operator=(const ElectionRounds&) = delete;

  // Errors: DataLoss (a violation, or a step failed that must not: the message
  // has all details), DeadlineExceeded (as well), Unavailable (a program can't
  // be started).
  absl::StatusOr<ElectionReport> RunRound(const ElectionPlan& plan);
  // Kills all programs, and makes the last check. Errors: as RunRound.
  absl::Status Finish();

 private:
  absl::Status PrepareLog();
  absl::Status RunPlan();
  absl::Status StartMissing();
  absl::Status StartProgram(int node);
  // Starts a program again that ended for lack of a quorum.
  absl::Status RestartEnded(const ClusterWriter& ended);

  // Appends for that long, by one primary: no call fails meanwhile.
  absl::Status AppendFor(int64_t nanos);

  absl::Status HitService(const ClusterWriter& primary);
  absl::Status HitBackup(const ClusterWriter& primary);
  absl::Status HitPrimary(ClusterWriter* primary);
  absl::Status ElectTwo(const ClusterWriter& primary);
  absl::Status WakeTwo(ClusterWriter* primary);
  absl::Status StartTwo(const ClusterWriter& primary);
  // Gives an operator's command until it succeeds: nodes may learn late who
  // stands.
  absl::Status MustInstruct(const std::string& command, int node);
  // Returns the command, with a time after which it gives up.
  Program Instruction(const std::string& command, int node,
                      const char* seconds) const;
  absl::Status Return(ClusterWriter* primary);
  // Ends a primary that was drained: it no longer stands.
  absl::Status EndDrained(ClusterWriter* primary);
  absl::Status HealService();

  absl::Status CheckBeside();
  absl::Status CheckAnnounced();
  absl::Status CheckLast();

  int NodeAfter(int node, int places) const;
  // Returns the node of a candidate other than the primary's and
  // plan_.candidate's.
  int OtherNode(const ClusterWriter& primary) const;
  std::string Said() const;

  const ElectionRoundOptions options_;
  Cluster& cluster_;
  ZookeeperServers* const servers_;
  LogHistory history_;
  std::map<int, std::unique_ptr<CuttableLinks>> links_;  // by program's node
  std::string log_;                                      // empty: none was made
  uint64_t log_count_ = 0;
  bool is_service_hit_ = false;
  // Losses by then of a primary that had the log when it was drained.
  std::optional<size_t> losses_before_drain_;

  // State of this log.
  StandingPrograms programs_;
  std::map<uint64_t, const ClusterWriter*> announced_;  // by epoch

  ElectionPlan plan_;
  ElectionReport report_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_ELECTION_ROUND_H_
