// SPDX-License-Identifier: Apache-2.0
// cluster_round: lets a primary append on a cluster of real processes, injects
// a fault into it or its backups, lets others recover and continue, and lets
// the oracle judge the log.
//
// A round on a log (nemesis.h draws the open choices):
//   1. a primary appends from several threads
//   2. the fault; backups may join again, or be replaced, and others go
//   3. what was hit starts again, and what was cut is healed, at once or late
//   4. primaries on another node that are killed while they recover
//   5. a successor on another node recovers and appends
//   6. a check at the log while it is at work
//   7. a paused primary continues; it, or one that was left alive, must end
//      with an error
//   8. the successor ends or is killed
//   9. an empty append opens the log once more; the last check
// Every check is judged against all acknowledgements and all earlier checks
// (log_history.h). The next round continues with the same log.
//
// SIGKILL leaves the page cache alone: this is no power cut.
//
// Invariants:
//   CRD1. Every wait has a deadline. To check that something does not happen
//         (an acknowledgement without a quorum), it waits for the same time.
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_ROUNDS_CLUSTER_ROUND_H_
#define ALPHEUS_TOOLS_NEMESIS_ROUNDS_CLUSTER_ROUND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/random.h"
#include "tools/nemesis/links/cuttable_links.h"
#include "tools/nemesis/oracles/log_history.h"
#include "tools/nemesis/processes/child_process.h"
#include "tools/nemesis/processes/cluster.h"
#include "tools/nemesis/rounds/nemesis.h"
#include "tools/nemesis/writers/cluster_writer.h"
#include "tools/nemesis/writers/feed.h"

namespace alpheus::demo {

struct ClusterRoundOptions {
  uint64_t region_bytes = 5 << 20;
  uint64_t threads = 4;
  // Size of a log's records, in bytes, at which a new log is made.
  uint64_t log_bytes_max = 1 << 20;
};

struct ClusterRoundReport {
  RoundPlan plan;
  uint64_t acknowledged_count = 0;
  uint64_t recovered_count = 0;
  uint64_t unacknowledged_count = 0;  // of those without acknowledgement
  uint64_t attempts = 0;  // primaries that were refused before one could open
  int64_t recovery_nanos = 0;  // from the successor's start to its first word
};

class ClusterRounds {
 public:
  // All arguments must outlive it. Requires: the cluster's nodes run.
  ClusterRounds(const ClusterRoundOptions& options, Cluster* cluster,
                const Feed* feed)
      : options_(options), cluster_(*cluster), feed_(*feed), history_(feed) {}

  // Makes the first log if there is none, and a new one if it is filling up.
  // Errors: DataLoss (a violation, or a step failed that must not: the message
  // says all), DeadlineExceeded (as well), Unavailable (a program can't be
  // started).
  absl::StatusOr<ClusterRoundReport> RunRound(const RoundPlan& plan);

  const std::string& log() const { return log_; }
  // Returns the name of a log, numbered from 1.
  static std::string LogName(uint64_t number) {
    return absl::StrCat("log-", number);
  }

 private:
  absl::Status PrepareLog();
  absl::Status RunPlan();
  absl::StatusOr<ClusterWriter*> StartWriter(int node, bool has_own_replica,
                                             bool is_primary = false);
  absl::Status MustReach(ClusterWriter* writer, uint64_t ack_count);
  absl::Status StrikeAndReturn(ClusterWriter* primary);
  absl::Status StrikePrimary(ClusterWriter* primary);
  absl::Status StrikeBackups(ClusterWriter* primary);
  absl::Status StrikeLinks(ClusterWriter* primary);
  absl::Status PrepareLinks();
  // Brings back all nodes that are down and heals all cuts.
  absl::Status Return();
  // Returns the cluster file of this round's primary; empty: the cluster's own.
  std::string FileOf(bool is_primary) const;
  void HitNodes();
  // Returns a primary's message that it has all replicas.
  std::string AllReplicas() const;
  // Waits until the primary's report of its replicas is this.
  absl::Status AwaitReplicas(
      ClusterWriter* primary,
      absl::FunctionRef<bool(absl::string_view said)> is_so);
  absl::Status AwaitAll(ClusterWriter* primary);
  absl::Status HaveThemResync(ClusterWriter* primary, size_t said_before);
  absl::Status HaveThemReplaced();
  absl::Status MustStop(ClusterWriter* primary);
  absl::Status TryInVain();
  absl::Status CutRecoveriesShort();
  absl::StatusOr<ClusterWriter*> Succeed();
  absl::Status MustBePushedAside(ClusterWriter* primary);
  absl::Status MustEndWell(ClusterWriter* writer);
  absl::Status CheckBesideWriter(ClusterWriter* successor);
  absl::Status OpenAndCheck();
  std::vector<WriterFacts> Facts() const;

  const ClusterRoundOptions options_;
  Cluster& cluster_;
  const Feed& feed_;
  LogHistory history_;
  std::unique_ptr<CuttableLinks> links_;  // made on first use
  std::string log_;                       // empty: none was made
  uint64_t log_count_ = 0;

  // Plan of the running round.
  RoundPlan plan_;
  ClusterRoundReport report_;
  std::vector<std::unique_ptr<ClusterWriter>> writers_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_ROUNDS_CLUSTER_ROUND_H_
