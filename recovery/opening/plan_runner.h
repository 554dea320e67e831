// SPDX-License-Identifier: Apache-2.0
// plan_runner: makes replicas hold the chosen log, and installs the epoch on
// them.
//
// Idea: each repair of the plan goes its own way: prepare, copy, install. Only
// when it may begin depends on the others.
//
// Invariants:
//   PLR1. A replica's ring is written only after it said that it is prepared;
//         `repairing` is on media by then, where the plan wants it (P-H12).
//   PLR2. A destructive repair begins when the quorums have installed; or when
//         nothing else is under way any more, so that it is needed for them
//         (RPL2 of repair_plan.h), and one has installed at least. The replica
//         that holds the last chosen record needs none: what it lacks lies
//         between its own head and that record. As long as it has not
//         installed, nobody else may hold what it lends, and one replica that
//         knows nothing is too many where all have to say that they never
//         acknowledged what comes next (W = 1): if it goes before, or leaves
//         the log by the change that the opening makes, the opening ends.
//   PLR3. A replica installs only after all that it lacked was copied.
//   PLR4. A newcomer's copy begins when the quorums before it have installed.
//   PLR5. A cache counts for nothing (P-A3); it is filled first, and everything
//         else is copied from there.
// Thread safety: one thread.
// References: protocol P-A4.5, P-H3, P-H12, P-H13.
#ifndef ALPHEUS_RECOVERY_OPENING_PLAN_RUNNER_H_
#define ALPHEUS_RECOVERY_OPENING_PLAN_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "log/base/random.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/opening/chooser.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/opening/repair_plan.h"
#include "recovery/opening/ring_copier.h"
#include "recovery/protocol/opening_peer.h"
#include "recovery/replica/own_replica.h"

namespace alpheus {

struct PlanTerms {
  InstallQuorums quorums;
  Configuration configuration;  // that is installed
  Promise promise;
  uint32_t credits = 0;
  uint64_t copy_bytes_max = 0;  // under way, of one copy
  uint64_t slice_bytes = 0;     // that the own replica reads in one Poll
};

// What is run: everything by the index of its answer.
struct PlanInput {
  std::vector<Answer> answers;
  std::vector<OpeningPeer*> peers;  // nullptr: the own replica's answer
  Decision decision;
  RepairPlan plan;
  OwnReplica* own = nullptr;  // or the cache
  bool is_cache = false;      // has no answer
  RegionKey own_key;          // of its ring
};

class PlanRunner {
 public:
  // `fabric` and `random` must outlive it.
  PlanRunner(const PlanTerms& terms, PlanInput input, Fabric& fabric,
             RandomSource& random);

  // Goes on. Errors, after which the opening is over: Unavailable (fewer
  // members can install than a quorum takes), Aborted (the own replica promised
  // another primary in between), the own replica's.
  absl::Status Poll();
  void Take(const Completion& completion);

  // Grows with each step of each repair, and each piece that is copied.
  uint64_t progress() const;
  // The own replica, or the cache, is reading what it installs: Poll goes on.
  bool is_at_work() const { return own_installing_; }
  // Nanoseconds that a replica may take for a step of which nothing is heard
  // before its end: to read the whole log that it installs.
  int64_t PatienceNanos() const;

  // The quorums have installed, and the own replica or the cache has.
  bool is_enough() const;
  // Nothing is under way any more.
  bool is_settled() const;
  // Gives up what is not installed.
  void Stop(const absl::Status& why);
  // No copy needs memory or a connection any more.
  bool is_quiet() const;

  const Decision& decision() const { return input_.decision; }
  // One sentence for each replica that was written to.
  std::vector<std::string> Sentences() const;

 private:
  enum class Step {
    kWaiting,
    kPreparing,
    kCopying,
    kInstalling,
    kInstalled,
    kFailed,
  };
  struct Run {
    ReplicaRepair repair;
    OpeningPeer* peer = nullptr;  // nullptr: the own replica
    Step step = Step::kWaiting;
    std::unique_ptr<RingCopier> copier;
  };

  static bool IsUnderWay(const Run& run) {
    return run.step != Step::kWaiting && !IsSettled(run);
  }
  static bool IsSettled(const Run& run) {
    return run.step == Step::kInstalled || run.step == Step::kFailed;
  }
  bool MayBegin(size_t index) const;
  // It will never begin (PLR2).
  bool IsBarred(size_t index) const;
  absl::Status GoOn(size_t index);
  absl::Status Begin(Run& run);
  absl::Status BeginCopying(size_t index);
  absl::Status CopyOn(Run& run);
  absl::Status InstallOn(Run& run);
  absl::Status StartInstallingOwn();
  absl::Status InstallOwnOn();
  void BecomeInstalled(Run& run);
  absl::Status OfOwn(const absl::Status& status) const;
  void Fail(Run& run, const absl::Status& status);
  absl::Status FillCache();
  absl::StatusOr<std::unique_ptr<RingCopier>> MakeCopier(
      size_t number, OpeningPeer* destination,
      const std::vector<CopyRun>& copies);
  Installation WhatIsInstalled() const;
  Member MemberOf(const Run& run) const;
  // Of the members of a quorum, those whose runs are so.
  uint32_t Count(const InstallQuorum& quorum,
                 const std::function<bool(const Run&)>& is_so) const;
  bool HaveInstalled(const std::vector<InstallQuorum>& quorums) const;
  bool MayInstall(const Run& run) const;
  absl::Status CheckPossible() const;

  const PlanTerms terms_;
  const PlanInput input_;
  Fabric& fabric_;
  RandomSource& random_;
  std::vector<Run> runs_;
  OwnRing own_ring_;
  bool own_installing_ = false;
  bool own_installed_ = false;
  bool any_installed_ = false;  // a member's medium has the epoch
  uint64_t steps_ = 0;          // that repairs have made
  std::unique_ptr<RingCopier> cache_copier_;
  bool stopped_ = false;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_OPENING_PLAN_RUNNER_H_
