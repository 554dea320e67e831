// SPDX-License-Identifier: Apache-2.0
// cluster_run: a cluster that works, for cluster_cuts.h to cut its power.
//
// Several clients write one log: what one reserves another completes in between
// and a third forces. Primaries are killed and others open the next epoch;
// members lag, crash and come back.
#ifndef ALPHEUS_TESTS_CRASH_CLUSTER_RUN_H_
#define ALPHEUS_TESTS_CRASH_CLUSTER_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/crash/cluster_cuts.h"

namespace alpheus::testing {

class ClusterRun {
 public:
  ClusterRun(ClusterCuts& cuts, const ClusterCutOptions& options,
             CutPoints::At at);
  ~ClusterRun();

  OpeningWorld& world() { return *world_; }
  ClusterOracle& oracle() { return oracle_; }
  bool is_open() const { return primary_ != nullptr; }
  int host() const { return primary_->host; }
  int members_up();
  // Primaries that ended for want of a quorum.
  int lost_quorums() const { return lost_quorums_; }

  // An epoch, and the log on it.
  void Open(int host);
  // The primary's process is killed, and with it what served its replica.
  void Kill();
  // A member without the primary; its power is cut, too.
  void CrashMember(int node);
  void RestartAll();
  // The member hears nothing, until the next Kill. The primary gives it up; if
  // that was one too many, what it calls next fails, and it is killed.
  void Isolate(int node);

  void Append();
  // A client's first half, not visible yet, and the second.
  void Reserve();
  void CompleteOne();
  void AbortOne();
  void CompleteAll();
  void Force();
  void Cleanup(uint64_t lsn);
  void CleanupThrough(uint64_t lsn);
  void CleanupAll();

  // All members end, and start again from the images.
  void PowerCut(const Images& images, const ClusterOracle& oracle);

 private:
  struct Client {
    ReservedRecord record;
    std::string text;
  };
  void Watch();
  // True if the call succeeded. A lost quorum ends the primary; all else is a
  // failure of the test.
  bool IsDone(const absl::Status& status);
  // False where an opening failed; the test has failed then, too.
  bool log_is_open() const { return is_open() && primary_->log != nullptr; }
  RingLog<model::ModelPersistence>& log() { return *primary_->log; }

  ClusterCuts& cuts_;
  const ClusterCutOptions options_;
  const CutPoints::At at_;
  std::unique_ptr<OpeningWorld> world_;
  std::unique_ptr<CutPoints> points_;
  ClusterOracle oracle_;
  std::unique_ptr<OpeningWorld::Primary> primary_;
  std::vector<Client> clients_;  // with a reservation
  std::vector<std::pair<int, int>> cut_links_;
  int lost_quorums_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_CRASH_CLUSTER_RUN_H_
