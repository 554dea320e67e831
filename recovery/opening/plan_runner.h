// SPDX-License-Identifier: Apache-2.0
// plan_runner: makes replicas hold the chosen log, and installs the epoch on
// them.
//
// Idea: each repair of the plan runs by itself: open for repair, copy, install.
// Only its beginning depends on the others.
//
// Invariants:
//   PLR1. A replica's ring is written only after the replica said that it is
//         open for repair. By then `repairing` is on media, where the plan
//         wants it (P-H12).
//   PLR2. A destructive repair begins when the quorums have installed, or when
//         all repairs before it are over and it is needed for the quorums (RPL2
//         of repair_plan.h). At least one replica must have installed, in any
//         case.
//         Reason: a replica that holds the last chosen record needs no
//         destructive repair, since it lacks at most records between its own
//         head and that one. Until it has installed, it may be the only copy.
//         So if it fails before that, or leaves the log by this very change,
//         the opening ends with an error, and no other replica is overwritten.
//         Example: N = 3, W = 1. An opening needs N - W + 1 = 3 nacks to find
//         the end of the log. Replica 1 alone has the last record. If 1 failed
//         while 2 was being overwritten, 2 would know nothing, and give no
//         nack: no opening could find the end any more.
//   PLR3. A replica installs only after all that it lacked was copied.
//   PLR4. A newcomer's copy begins when the quorums before it have installed.
//   PLR5. A working copy counts for nothing (P-A3). It is filled first, and all
//         else is copied from it.
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
#include "log/core/space/ceiling.h"
#include "quorum/arithmetic/promise.h"
#include "recovery/opening/chooser.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/opening/repair_plan.h"
#include "recovery/opening/ring_copier.h"
#include "recovery/protocol/opening_peer.h"
#include "recovery/replica/openers_replica.h"

namespace alpheus::recovery {

struct PlanTerms {
  InstallQuorums quorums;
  Configuration configuration;  // the one to install
  quorum::Promise promise;
  uint32_t credits = 0;
  uint64_t copy_bytes_max = 0;  // bytes in flight, per copy
  uint64_t slice_bytes = 0;   // bytes that the own replica reads in one Advance
  uint32_t heartbeat_ms = 0;  // as in Install
  uint64_t ceiling_step_bytes = kCeilingStepBytes;
  bool keeps_ceiling = false;  // both as in EpochOpeningOptions
};

// The plan and its replicas; peers by the index of their report.
struct PlanInput {
  std::vector<StateReport> reports;
  std::vector<OpeningPeer*> peers;  // nullptr: the own replica
  Decision decision;
  RepairPlan plan;
  OpenersReplica* own = nullptr;  // the own replica, or the working copy
  bool is_working_copy = false;  // `own` is a working copy, which has no report
  fabric::RegionKey own_key;     // key of the own ring
};

class PlanRunner {
 public:
  // `fabric` and `random` must outlive the runner.
  PlanRunner(const PlanTerms& terms, PlanInput input, fabric::Fabric& fabric,
             RandomSource& random);

  // Advances all repairs. After an error the opening is over. Errors:
  // Unavailable (too few members can install); FailedPrecondition (the own
  // replica promised another primary meanwhile); others of the own replica.
  absl::Status Advance();
  void OnCompletion(const fabric::Completion& completion);

  // Returns a count that grows with each step of a repair and each copied
  // piece.
  uint64_t progress() const;
  // Returns true while the own replica or the working copy reads what it
  // installs: call Advance again at once.
  bool is_at_work() const { return own_installing_; }
  // Returns how many nanoseconds a replica may need to read the whole log that
  // it installs. It sends nothing before the end of that step.
  int64_t PatienceNanos() const;

  // Returns true once the quorums and the own replica or the working copy have
  // installed.
  bool is_enough() const;
  // Returns true once no repair is running.
  bool is_over() const;
  // Gives up every replica that is not installed.
  void Stop(const absl::Status& why);
  // Returns true once no copy needs memory or a connection.
  bool is_quiet() const;

  const Decision& decision() const { return input_.decision; }
  // Returns one sentence for each replica that was written to.
  std::vector<std::string> Sentences() const;

 private:
  enum class Step {
    kWaiting,
    kOpeningForRepair,
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

  static bool IsInProgress(const Run& run) {
    return run.step != Step::kWaiting && !IsOver(run);
  }
  static bool IsOver(const Run& run) {
    return run.step == Step::kInstalled || run.step == Step::kFailed;
  }
  bool MayBegin(size_t index) const;
  // Returns true while the run must not begin because nothing is installed
  // (PLR2).
  bool IsBarred(size_t index) const;
  absl::Status Advance(size_t index);
  absl::Status Begin(Run& run);
  absl::Status BeginCopying(size_t index);
  absl::Status ContinueCopy(Run& run);
  absl::Status ContinueInstall(Run& run);
  absl::Status StartInstallingOwn();
  absl::Status ContinueInstallOwn();
  void BecomeInstalled(Run& run);
  void Fail(Run& run, const absl::Status& status);
  absl::Status FillCache();
  absl::StatusOr<std::unique_ptr<RingCopier>> MakeCopier(
      size_t number, OpeningPeer* destination,
      const std::vector<CopyRun>& copies);
  Installation WhatIsInstalled() const;
  RingOffset Ceiling() const;
  RingOffset WrittenEnd(const ReplicaRepair& repair) const;
  Member MemberOf(const Run& run) const;
  // Returns the number of the quorum's members whose runs satisfy the
  // predicate.
  uint32_t Count(const InstallQuorum& quorum,
                 const std::function<bool(const Run&)>& is_so) const;
  bool HaveInstalled(const std::vector<InstallQuorum>& quorums) const;
  bool MayInstall(const Run& run) const;
  absl::Status CheckPossible() const;

  const PlanTerms terms_;
  const PlanInput input_;
  fabric::Fabric& fabric_;
  RandomSource& random_;
  std::vector<Run> runs_;
  OwnRing own_ring_;
  bool own_installing_ = false;
  bool own_installed_ = false;
  bool any_installed_ = false;  // a member's medium has the epoch
  uint64_t steps_ = 0;          // steps of all repairs
  std::unique_ptr<RingCopier> cache_copier_;
  bool stopped_ = false;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_OPENING_PLAN_RUNNER_H_
